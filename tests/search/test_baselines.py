"""The methods that the papers compare against: each reproduces a known result."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.duals import greedy_dual
from sparcipal.kernels import nspca as kernel
from sparcipal.numerics.eigen import leading_eigenpairs
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.search.methods import em, gpower, greedy, nspca, spca, threshold, tpower
from tests.support.brute import best_value
from tests.support.places import data_file

SIGNED = (
    ("threshold", {}),
    ("tpower", {}),
    ("tpower", {"restarts": 5}),
    ("em", {}),
    ("em", {"thresholding": "soft"}),
    ("gpower", {}),
    ("gpower", {"norm": "l0"}),
    ("greedy", {}),
    ("greedy", {"exact": False}),
    ("spca", {}),
    ("spca", {"ridge": np.inf}),
    ("dspca", {}),
)
ALL = (*SIGNED, ("nspca", {}), ("nspca", {"joint": True}))


def pitprops() -> np.ndarray:
    return np.loadtxt(data_file("pitprops.csv"), delimiter=",")


def gaussian(n: int, p: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.mark.parametrize(("method", "own"), ALL)
@pytest.mark.parametrize("seed", range(6))
def test_answers_are_feasible_and_never_beat_the_optimum(method, own, seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 9))
    X = rng.standard_normal((6, p)) * 10.0 ** rng.uniform(-1, 1, p)
    if seed % 2:
        X[:, 0] = X[:, 1]
    k = 1 + seed % 3
    s = p // k - (seed % 2)
    nonnegative = method == "nspca" or seed % 3 == 0
    result = sparse_pca(
        X,
        n_components=k,
        n_nonzero_coefs=s,
        nonnegative=nonnegative,
        method=method,
        method_options=own,
        certify=False,
    )
    A = np.cov(X.T, bias=True)
    assert all(support.size <= s for support in result.supports)
    assert np.unique(np.concatenate(result.supports)).size == sum(map(len, result.supports))
    assert not nonnegative or all((w >= 0).all() for w in result.weights)
    assert result.value <= best_value(A, (s,) * k, nonnegative) * (1 + 1e-9)
    assert verify(result, X)


@pytest.mark.parametrize(("method", "own"), SIGNED)
@pytest.mark.parametrize(
    "A", [np.zeros((4, 4)), np.ones((4, 4)), np.eye(4), np.diag([3.0, 0, 0, 0])]
)
def test_baselines_answer_for_degenerate_matrices(method, own, A):
    from sparcipal.search.registry import get_method

    problem = Problem(covariance_of(A), (2, 1))
    for component in get_method(method).run(problem, Options(), **own).components:
        assert component.support.size >= 1
        assert np.linalg.norm(component.weights) == pytest.approx(1)


def test_baselines_give_the_same_answer_for_the_same_seed():
    X = gaussian(20, 40)
    for method, own in SIGNED:
        runs = [
            sparse_pca(X, n_nonzero_coefs=5, method=method, method_options=own, certify=False)
            for _ in range(2)
        ]
        assert np.array_equal(runs[0].supports[0], runs[1].supports[0])
        assert np.array_equal(runs[0].weights[0], runs[1].weights[0])


# Truncation and power steps


@pytest.mark.parametrize("nonnegative", [False, True])
def test_truncate_keeps_the_largest(nonnegative):
    Y = np.array([[3.0, -1.0], [-4.0, -2.0], [1.0, -3.0]])
    out = threshold.truncate(Y, 2, nonnegative)
    np.testing.assert_allclose(np.linalg.norm(out, axis=0), 1)
    if nonnegative:
        np.testing.assert_allclose(out[:, 0], np.array([3, 0, 1]) / np.sqrt(10))
        np.testing.assert_allclose(out[:, 1], [1, 0, 0])
    else:
        np.testing.assert_allclose(out[:, 0], np.array([3, -4, 0]) / 5)


@pytest.mark.parametrize("seed", range(12))
def test_thresholding_keeps_its_guarantees(seed):
    """A >= l1 uu', so x = u_S / |u_S| has x'Ax >= l1 |u_S|^2 >= l1 s/p; and Papailiopoulos et al.
    2013, theorem 1 for rank one: at least 1 - min(p l2 / (s l1), l2 / max A_ii) of the optimum.
    """
    rng = np.random.default_rng(seed)
    p, s = 8, int(rng.integers(1, 8))
    # Eigenvalues that fall slowly in even cases, so fast in odd ones that the theorem says much.
    X = rng.standard_normal((12, p)) @ np.diag(0.2 ** (np.arange(p) * (seed % 2)))
    A = X.T @ X @ X.T @ X if seed % 4 == 3 else X.T @ X
    result = sparse_pca(covariance=A, n_nonzero_coefs=s, method="threshold", certify=False)
    values, vectors = np.linalg.eigh(A)
    largest = np.sort(vectors[:, -1] ** 2)[::-1]
    assert result.value >= values[-1] * largest[:s].sum() * (1 - 1e-12)
    assert result.value >= values[-1] * s / p * (1 - 1e-12)
    lost = min(p * values[-2] / (s * values[-1]), values[-2] / A.diagonal().max())
    assert result.value >= (1 - lost) * best_value(A, (s,)) * (1 - 1e-12)


def test_thresholding_is_optimal_for_rank_one():
    a = np.random.default_rng(3).standard_normal(9)
    A = np.outer(a, a)
    for s in (1, 4, 9):
        result = sparse_pca(covariance=A, n_nonzero_coefs=s, method="threshold", certify=False)
        assert result.value == pytest.approx(np.sort(a**2)[-s:].sum(), rel=1e-12)


def test_thresholding_recovers_spikes_about_as_often_as_printed():
    """Papailiopoulos et al. 2013, section 4.1: 0.98 for 50 samples, fewer than all the others."""
    rng = np.random.default_rng(50)
    V = np.zeros((500, 2))
    V[:10, 0] = V[10:20, 1] = 10**-0.5
    truth = {tuple(range(10)), tuple(range(10, 20))}
    hits, repeats = 0, 50
    for _ in range(repeats):
        X = rng.standard_normal((50, 500))
        # The variance along the spikes is 400 and 300, and nothing is added to the noise there.
        X += (rng.standard_normal((50, 2)) * np.sqrt([400, 300]) - X @ V) @ V.T
        problem = Problem(
            covariance_of_data(X, center=False)[0], (10, 10), supports="free", objective="adjusted"
        )
        found = threshold.run(problem, Options(), deflation="projection")
        hits += {tuple(c.support.tolist()) for c in found.components} == truth
    # Three standard errors of a share of 0.98 in 50.
    assert 0.92 <= hits / repeats <= 1.0


def test_truncated_power_steps_never_lose():
    """Yuan & Zhang: for a PSD matrix the value is monotone."""
    cov, _, _ = covariance_of_data(gaussian(30, 60))
    x = np.random.default_rng(1).standard_normal((60, 8))
    last = np.zeros(8)
    for steps in range(1, 12):
        _, values, _ = tpower.ascend(cov, x, 6, False, max_iter=steps)
        assert (values >= last - 1e-15).all()
        last = values


def test_soft_truncation_shrinks_by_the_next_largest():
    out = em.soft_truncate(np.array([[5.0], [-4.0], [1.0], [3.0]]), 2, False)[:, 0]
    np.testing.assert_allclose(out, np.array([2, -1, 0, 0]) / np.sqrt(5))
    tied = em.soft_truncate(np.ones((3, 1)), 2, False)[:, 0]
    assert np.count_nonzero(tied) == 2


@pytest.mark.parametrize(("method", "printed"), [("tpower", 41.4), ("em", 42.4)])
def test_baselines_reach_the_printed_values_on_kos(method, printed):
    """Asteris et al. 2015, table 2: 8 components of 15 words by deflation; ours within 2 %."""
    from sparcipal import read

    table = read(data_file("docword.kos.txt.gz"))
    result = sparse_pca(
        table, n_components=8, n_nonzero_coefs=15, center=False, method=method, certify=False
    )
    assert result.value == pytest.approx(printed, rel=0.02)


@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("tpower", {}),
        ("gpower", {"norm": "l0"}),
        ("gpower", {"norm": "l1"}),
        ("greedy", {"test": False}),
    ],
)
def test_baselines_recover_spiked_components(method, own):
    """Papailiopoulos et al. 2013, 4.1: 50 samples of 500 features, both spikes are recovered."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        V = np.zeros((500, 2))
        V[:10, 0] = V[10:20, 1] = 1 / np.sqrt(10)
        scale = np.sqrt([400 - 1, 300 - 1])
        X = rng.standard_normal((50, 500)) + (rng.standard_normal((50, 2)) * scale) @ V.T
        result = sparse_pca(
            X,
            n_components=2,
            n_nonzero_coefs=10,
            supports="free",
            center=False,
            method=method,
            method_options={**own, "deflation": "projection"},
            certify=False,
        )
        found = sorted(tuple(support) for support in result.supports)
        assert found == [tuple(range(10)), tuple(range(10, 20))]


# GPower


@pytest.mark.parametrize("norm", ["l0", "l1"])
def test_gpower_agrees_with_its_definition_on_the_data(norm):
    """The steps through the covariance are those of the paper in the space of samples."""
    F = gaussian(15, 25, 2)  # columns a_i
    cov = covariance_of(F.T @ F)
    A = cov.dense()
    unit = np.sqrt(cov.unit)
    gamma = 0.4 * np.sqrt(A.diagonal().max())
    start = np.zeros(25)
    start[int(np.argmax(A.diagonal()))] = 1
    w, _ = gpower.single_unit(cov, gamma, norm, False, start, 500)
    z = F[:, int(np.argmax(A.diagonal()))].copy()
    for _ in range(500):
        scores = F.T @ (z / np.linalg.norm(z)) / unit
        if norm == "l1":
            z = F @ (np.sign(scores) * np.maximum(np.abs(scores) - gamma, 0))
        else:
            z = F @ np.where(np.abs(scores) > gamma, scores, 0)
    expected = F.T @ (z / np.linalg.norm(z)) / unit
    assert np.array_equal(np.flatnonzero(w), np.flatnonzero(np.abs(expected) > gamma))


def test_gpower_block_of_one_is_the_single_unit():
    cov, _, _ = covariance_of_data(gaussian(30, 20, 4))
    start = leading_eigenpairs(cov, 1, np.random.default_rng(0))[1]
    gamma = 0.3 * np.sqrt(cov.diagonal.max())
    block, _ = gpower.block_units(cov, np.array([gamma]), "l1", False, start, 300)
    single, _ = gpower.single_unit(cov, gamma, "l1", False, start[:, 0], 300)
    np.testing.assert_allclose(block[:, 0], single, atol=1e-12)


def test_gpower_block_needs_free_supports():
    with pytest.raises(ValueError, match="supports='free'"):
        sparse_pca(
            gaussian(20, 10),
            n_components=2,
            n_nonzero_coefs=3,
            method="gpower",
            method_options={"block": True},
        )
    result = sparse_pca(
        gaussian(20, 10),
        n_components=2,
        n_nonzero_coefs=3,
        supports="free",
        method="gpower",
        method_options={"block": True},
        certify=False,
    )
    assert all(support.size <= 3 for support in result.supports)


def test_gpower_notes_a_cardinality_that_no_penalty_reaches():
    """Two equal features enter together: one of them alone is out of reach for a penalty."""
    A = np.kron(np.diag([2.0, 1.0]), np.ones((2, 2)))
    found = gpower.run(Problem(covariance_of(A), (1,)), Options())
    assert found.components[0].support.size == 1
    assert "no component of exactly 1 nonzero (2 at penalty 1, none above it)" in found.note


def test_gpower_refuses_penalties_and_norms_it_does_not_know():
    problem = Problem(covariance_of(np.diag([1.0, 0.5])), (1,))
    with pytest.raises(ValueError, match=r"penalty=2 must lie in \[0, 1\)"):
        gpower.run(problem, Options(), penalty=2)
    found = gpower.run(problem, Options(), penalty=0.9)
    assert found.components[0].support.tolist() == [0]
    with pytest.raises(ValueError, match="norm must be"):
        gpower.run(problem, Options(), norm="l2")


@pytest.mark.parametrize("method", ["gpower", "dspca", "nspca"])
def test_fewer_nonzeros_than_allowed_at_a_given_penalty_are_said(method):
    A = np.diag([1.0, 0.8, 0.3, 0.2])
    A[0, 1] = A[1, 0] = 0.5
    result = sparse_pca(
        covariance=A,
        n_nonzero_coefs=4,
        method=method,
        method_options={"penalty": 0.4},
        nonnegative=method == "nspca",
        certify=False,
    )
    found = result.supports[0].size
    assert found < 4
    assert f"at penalty=0.4 gives {found} of the 4 nonzeros allowed" in result.note


def test_a_penalty_that_leaves_nothing_names_the_range():
    A = np.cov(gaussian(20, 7, 3).T, bias=True)
    problem = Problem(covariance_of(A), (3,), nonnegative=True)
    with pytest.raises(
        ValueError, match=r"penalty=0\.9\d* leaves no feature in the nspca"
    ) as caught:
        nspca.run(problem, Options(), penalty=0.99, coupling=0.05)
    words = str(caught.value)
    most = float(words.split("at most ")[1].split(",")[0])
    assert 0 < most < 0.99
    found = nspca.run(problem, Options(), penalty=most, coupling=0.05)
    assert found.components[0].support.size >= 1


@pytest.mark.parametrize(
    ("method", "own", "unit"),
    [
        ("tpower", {}, "steps"),
        ("em", {}, "steps"),
        ("gpower", {}, "steps"),
        ("gpower", {"penalty": 0.1}, "steps"),
        ("gpower", {"block": True}, "steps"),
        ("spca", {}, "rounds"),
        ("nspca", {}, "steps"),
        ("nspca", {"joint": True}, "steps"),
    ],
)
def test_iterations_that_are_cut_off_are_said_with_numbers(method, own, unit):
    result = sparse_pca(
        gaussian(15, 20, 6),
        n_components=2 if own.get("block") or own.get("joint") else 1,
        n_nonzero_coefs=5,
        method=method,
        method_options={**own, "max_iter": 1},
        supports="free" if own.get("block") else "disjoint",
        nonnegative=method == "nspca",
        certify=False,
    )
    assert f"stopped after max_iter=1 {unit}" in result.note


# Greedy


def test_greedy_path_takes_the_best_next_feature():
    cov, _, _ = covariance_of_data(gaussian(12, 15, 5))
    A = cov.dense()
    steps = greedy.path(cov, 6, False)
    chosen = [int(np.argmax(A.diagonal()))]
    for component, value in steps[1:]:
        best = max(
            (np.linalg.eigvalsh(A[np.ix_([*chosen, i], [*chosen, i])])[-1], i)
            for i in range(15)
            if i not in chosen
        )
        chosen.append(best[1])
        assert sorted(chosen) == component.support.tolist()
        assert value == pytest.approx(best[0], rel=1e-10)


def test_greedy_path_on_pitprops_is_optimal():
    """As in d'Aspremont et al. 2008; the values by enumeration."""
    exact = [1.0, 1.954, 2.4753313532, 2.9374789467, 3.4061549468, 3.7709595523, 3.9961896449]
    values = [value for _, value in greedy.path(covariance_of(pitprops()), 7, False)]
    np.testing.assert_allclose(values, exact, rtol=1e-9)


def test_greedy_dual_is_the_bound_of_the_paper():
    """Built from its definition, with explicit matrices Y_i in the space of samples."""
    F = gaussian(6, 9, 7)
    A = F.T @ F
    cov = covariance_of(A)
    component, _ = greedy.path(cov, 3, False)[-1]
    bound = greedy_dual(cov, component, 3)
    assert bound is not None
    rho = bound.data["rho"] * cov.unit
    z = F[:, component.support] @ component.weights
    z /= np.linalg.norm(z)
    total = np.zeros((6, 6))
    for a in F.T:
        B, g = np.outer(a, a) - rho * np.eye(6), a @ z
        if g * g > rho:
            Y = np.outer(B @ z, B @ z) / (g * g - rho)
        else:
            v = a - g * z
            Y = max(0, rho * (a @ a - rho) / (rho - g * g)) * np.outer(v, v) / (v @ v)
        assert np.linalg.eigvalsh(Y)[0] > -1e-9
        assert np.linalg.eigvalsh(Y - B)[0] > -1e-9
        total += Y
    expected = np.linalg.eigvalsh(total)[-1] + 3 * rho
    assert bound.value * cov.unit == pytest.approx(expected, rel=1e-9)
    assert bound.value * cov.unit >= best_value(A, (3,))


def test_greedy_test_proves_an_obvious_optimum():
    A = np.diag([1.0, 0.9, 0.1, 0.05, 0.02])
    A[0, 1] = A[1, 0] = 0.8
    found = greedy.run(Problem(covariance_of(A), (2,)), Options())
    optimum = best_value(covariance_of(A).dense(), (2,))
    assert optimum <= found.bounds[0].value <= optimum * (1 + 1e-6)


def test_tampered_greedy_proof_is_refused():
    from dataclasses import replace

    A = gaussian(9, 6, 8)
    result = sparse_pca(A, n_nonzero_coefs=2, method="greedy", certify=False)
    place, bound = next(
        (i, b) for i, b in enumerate(result.certificate.bounds) if b.name == "greedy-dual"
    )
    data = {**bound.data, "core": bound.data["core"][1:]}
    bounds = list(result.certificate.bounds)
    bounds[place] = replace(bound, data=data)
    forged = replace(result, certificate=replace(result.certificate, bounds=tuple(bounds)))
    assert verify(result, A)
    assert not verify(forged, A)


# SPCA


def test_spca_agrees_with_the_alternation_by_coordinate_descent_on_pitprops():
    """Zou et al. 2006 as they write it, on the root of A, each net by scikit-learn's Lasso.

    The penalties are those of the example in the manual of their R package.
    """
    from sklearn.linear_model import Lasso

    A, ridge = pitprops(), 1e-6
    penalties = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]
    B, _ = spca.fit(
        Problem(covariance_of(A), (13,) * 6),
        np.random.default_rng(0),
        ridge=ridge,
        max_iter=500,
        penalties=penalties,
    )
    assert np.count_nonzero(B, axis=0).max() == 7
    values, vectors = np.linalg.eigh(A)
    root = vectors * np.sqrt(values) @ vectors.T
    stacked = np.vstack([root, np.sqrt(ridge) * np.eye(13)])
    exact = {"fit_intercept": False, "tol": 1e-12, "max_iter": 10**6}
    nets = [Lasso(penalty / 52, **exact) for penalty in penalties]
    targets = vectors[:, :-7:-1]
    for _ in range(300):
        sides = np.vstack([root @ targets, np.zeros((13, 6))])
        found = np.column_stack([net.fit(stacked, y).coef_ for net, y in zip(nets, sides.T)])
        found /= np.linalg.norm(found, axis=0)
        left, _, right = np.linalg.svd(A @ found, full_matrices=False)
        targets = left @ right
    np.testing.assert_allclose(np.abs(found), np.abs(B), atol=2e-4)


def test_elastic_net_point_satisfies_its_optimality_conditions():
    A = np.cov(gaussian(30, 8, 9).T, bias=True)
    gram, target = A + 0.1 * np.eye(8), A @ np.linalg.eigh(A)[1][:, -1]
    b = spca.elastic_net(gram, target, 3, False)
    slope = target - gram @ b
    level = np.abs(slope[b != 0])
    assert np.count_nonzero(b) == 3
    np.testing.assert_allclose(level, level.max(), rtol=1e-8)
    assert np.abs(slope).max() <= level.max() * (1 + 1e-8)


def test_spca_refuses_a_negative_ridge():
    with pytest.raises(ValueError, match="ridge=-1"):
        spca.run(Problem(covariance_of(np.eye(3)), (1,)), Options(), ridge=-1)


# NSPCA


@pytest.mark.kernels
def test_nspca_entry_is_the_maximum_of_the_quartic():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 6, 60001)
    for _ in range(200):
        alpha, c2, c1 = rng.uniform(0.2, 3), rng.normal() * 3, rng.normal() * 3
        value = -alpha / 4 * grid**4 + c2 / 2 * grid**2 + c1 * grid
        u = kernel.best_entry(alpha, c2, c1)
        assert -alpha / 4 * u**4 + c2 / 2 * u**2 + c1 * u >= value.max() - 1e-6
        assert u >= 0
    # so small that a power underflows
    assert kernel.best_entry(1.0, 3e-220, 0.0) == pytest.approx(np.sqrt(3e-220), rel=1e-12)


def twin_ascend(A, U, alpha, beta, sweeps):
    """The sweeps in NumPy: each entry by the roots of the derivative of its quartic."""
    U = U.copy()
    p, k = U.shape

    def objective(u, r, c):
        V = U.copy()
        V[r, c] = u
        distance = np.linalg.norm(np.eye(k) - V.T @ V) ** 2
        return 0.5 * np.trace(V.T @ A @ V) - alpha / 4 * distance - beta * V.sum()

    for _ in range(sweeps):
        for r in range(p):
            for c in range(k):
                # Five values give the quartic, its derivative the candidates.
                grid = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
                quartic = np.polyfit(grid, [objective(u, r, c) for u in grid], 4)
                roots = np.roots(np.polyder(quartic))
                roots = [0.0, *roots[np.abs(roots.imag) < 1e-9].real.clip(min=0)]
                U[r, c] = max(roots, key=lambda u: objective(u, r, c))
    return U


@pytest.mark.kernels
@pytest.mark.parametrize("k", [1, 2, 3])
def test_nspca_kernel_matches_its_numpy_twin(k):
    A = np.cov(gaussian(20, 6, 3).T, bias=True)
    start = np.abs(gaussian(6, k, 1))
    for sweeps in (1, 3):
        mine, n_iter = nspca.ascend(A, start, 2.0, 0.1, sweeps, tol=0.0)
        assert n_iter == sweeps
        np.testing.assert_allclose(mine, twin_ascend(A, start, 2.0, 0.1, sweeps), atol=1e-6)


@pytest.mark.kernels
def test_nspca_sweeps_raise_the_objective():
    A = np.cov(gaussian(20, 7, 3).T, bias=True)
    alpha, beta = 2.0, 0.1
    U = np.abs(gaussian(7, 2, 1))

    def objective(U):
        return (
            0.5 * np.trace(U.T @ A @ U)
            - alpha / 4 * np.linalg.norm(np.eye(2) - U.T @ U) ** 2
            - beta * U.sum()
        )

    values = [objective(nspca.ascend(A, U, alpha, beta, sweeps)[0]) for sweeps in range(1, 8)]
    assert (np.diff(values) >= -1e-10).all()


def test_nspca_finds_the_nonnegative_optimum_of_pitprops():
    for s, value in ((3, 2.4753313532), (5, 3.4061549468), (10, 4.1441106786)):
        result = sparse_pca(
            covariance=pitprops(),
            n_nonzero_coefs=s,
            nonnegative=True,
            method="nspca",
            certify=False,
        )
        assert result.value == pytest.approx(value, rel=1e-9)


def test_nspca_refuses_signed_components():
    with pytest.raises(ValueError, match="nonnegative=True"):
        sparse_pca(gaussian(10, 5), n_nonzero_coefs=2, method="nspca")


def test_components_know_their_vector():
    component = Component.from_vector(np.array([0.0, 3.0, 0.0, -4.0]))
    np.testing.assert_allclose(component.vector(4), [0, 0.6, 0, -0.8])


def test_spca_finds_all_components_at_once_when_supports_are_free():
    """The paper's own problem: all components at once."""
    X = np.random.default_rng(0).standard_normal((20, 5))
    result = sparse_pca(
        X, n_components=2, n_nonzero_coefs=3, supports="free", method="spca", certify=False
    )
    assert [s.size <= 3 for s in result.supports] == [True, True]
    assert result.info["joint"] is True
