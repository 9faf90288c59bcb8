"""DSPCA: the ascent against a conic solver, its certificate against everything there is."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.duals import dspca_dual
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.kernels import dspca as kernel
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Options, Problem
from sparcipal.problem.result import Bound
from sparcipal.search.deflation import Downdated
from sparcipal.search.methods import dspca
from sparcipal.search.relaxation import Start, Sweeps, ascend, soft_threshold
from tests.support.brute import best_value
from tests.support.places import data_file
from tests.support.replay import recheck


def gaussian(n: int, seed: int = 0) -> np.ndarray:
    F = np.random.default_rng(seed).standard_normal((n + 2, n))
    return F.T @ F / (n + 2)


def conic(A: np.ndarray, penalty: float, nonnegative: bool) -> float:
    cp = pytest.importorskip("cvxpy")
    Z = cp.Variable(A.shape, PSD=True)
    conditions = [cp.trace(Z) == 1] + ([Z >= 0] if nonnegative else [])
    goal = cp.Maximize(cp.trace(A @ Z) - penalty * cp.sum(cp.abs(Z)))
    problem = cp.Problem(goal, conditions)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [3, 8, 13])
def test_agrees_with_a_conic_solver(n, fraction, nonnegative):
    A = gaussian(n, n)
    penalty = fraction * A.diagonal().max()
    phi = conic(A, penalty, nonnegative)
    mine = ascend(A, penalty, nonnegative=nonnegative, tol=1e-4, sweeps=Sweeps(3000))
    assert mine.converged
    assert mine.value <= phi * (1 + 1e-6)
    assert mine.bound >= phi * (1 - 1e-6)
    assert mine.bound - mine.value <= 1.01e-4 * phi


@pytest.mark.parametrize("nonnegative", [False, True])
def test_every_iterate_is_a_feasible_pair(nonnegative):
    """Stopped after three sweeps, both sides still hold."""
    for seed in range(20):
        A = gaussian(10, seed)
        penalty = 0.2 * A.diagonal().max()
        early = ascend(A, penalty, nonnegative=nonnegative, sweeps=Sweeps(3))
        late = ascend(A, penalty, nonnegative=nonnegative, tol=1e-4, sweeps=Sweeps(2000))
        assert early.value <= late.bound * (1 + 1e-12)
        assert early.bound >= late.value * (1 - 1e-12)
        for pair in (early, late):
            assert np.linalg.eigvalsh(pair.Z)[0] > -1e-12
            assert np.trace(pair.Z) == pytest.approx(1)
            U = pair.dual - A
            assert U.min() >= -penalty * (1 + 1e-12)
            assert nonnegative or U.max() <= penalty * (1 + 1e-12)
            assert np.linalg.eigvalsh(pair.dual)[-1] <= pair.bound * (1 + 1e-12)


def test_blocks_are_solved_apart_with_the_same_result():
    first, second = gaussian(6, 1), 0.8 * gaussian(5, 2)
    A = np.block([[first, np.full((6, 5), 0.05)], [np.full((5, 6), 0.05), second]])
    whole = ascend(A, 0.3, tol=1e-5, sweeps=Sweeps(2000))
    parts = [ascend(B, 0.3, tol=1e-5, sweeps=Sweeps(2000)) for B in (first, second)]
    assert whole.value == pytest.approx(max(part.value for part in parts), rel=3e-5)
    assert soft_threshold(A, 0.3, False)[:6, 6:].any() == np.False_


def _dual(problem, point):
    return dspca_dual(problem, point.core, point.relaxation.dual, point.relaxation.penalty)


def test_elimination_changes_the_relaxation_but_not_the_certificate():
    """At l = 1 feature 2 is eliminated; phi of the rest is 99, phi of all is more."""
    A = np.array([[100.0, 5.0], [5.0, 0.5]])
    everything = ascend(A, 1.0, tol=1e-6, sweeps=Sweeps(3000))
    cov = covariance_of(A)
    point = dspca.solve_at(cov, 1.0 / cov.unit, False, 1e-6)
    assert point.core.tolist() == [0]
    assert point.relaxation.value * cov.unit == pytest.approx(99.0)
    assert everything.value > 99.1
    for s in (1, 2):
        bound = _dual(Problem(cov, (s,)), point)
        optimum = best_value(A, (s,))
        assert optimum <= bound.value * cov.unit <= 99 + s + 1e-6
        checked = checked_covariance_of(A, cov.unit)
        own = recheck("dspca-dual", bound.data, checked, Question((s,), False, True, 0.0))
        assert own <= bound.value * (1 + 1e-12)
        assert own * cov.unit >= optimum


def test_the_checker_refuses_a_certificate_that_proves_nothing():
    A = gaussian(6, 5)
    cov = covariance_of(A)
    point = dspca.solve_at(cov, 0.3 * cov.diagonal.max(), False, 1e-3)
    bound = _dual(Problem(cov, (2,)), point)
    checked = checked_covariance_of(A, cov.unit)
    question = Question((2,), False, True, 0.0)
    assert recheck("dspca-dual", bound.data, checked, question) <= bound.value
    moved = bound.data["moved"].copy()
    moved[0] = 2 * bound.data["penalty"]
    assert recheck("dspca-dual", {**bound.data, "moved": moved}, checked, question) == np.inf
    smaller = {**bound.data, "core": bound.data["core"][:-1]}
    assert recheck("dspca-dual", smaller, checked, question) == np.inf
    small = {"penalty": bound.data["penalty"], "core": np.arange(5), "moved": np.zeros(10)}
    assert recheck("dspca-dual", small, checked, question) == np.inf


@pytest.mark.parametrize("seed", range(30))
def test_certificate_holds_on_awkward_problems(seed):
    """Ties, copies, scales, few samples, one and several components, against brute force."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 9))
    X = rng.standard_normal((int(rng.integers(2, 10)), p)) * 10.0 ** rng.uniform(-2, 2, p)
    if seed % 3 == 0:
        X[:, -1] = -X[:, 0]
    if seed % 4 == 0:
        X = np.round(X)
    X *= 10.0 ** rng.choice([-12, 0, 12])
    Xc = X - X.mean(axis=0)
    A = Xc.T @ Xc / len(X)
    k = 1 if seed % 2 else 2
    s, nonnegative = int(rng.integers(1, p // k + 1)), bool(seed % 5 == 0)
    result = sparse_pca(
        X,
        n_components=k,
        n_nonzero_coefs=s,
        nonnegative=nonnegative,
        method="dspca",
        certify=False,
    )
    bound = next(b for b in result.certificate.bounds if b.name == "dspca-dual")
    optimum = best_value(A, (s,) * k, nonnegative)
    assert bound.value >= optimum * (1 - 1e-13)
    assert result.value <= optimum * (1 + 1e-9)
    assert verify(result, X)


PITPROPS = {2: 1.954, 3: 2.4753313532, 5: 3.4061549468, 7: 3.9961896449, 10: 4.1726376616}


@pytest.mark.parametrize("s", sorted(PITPROPS))
def test_dspca_finds_the_components_of_pitprops(s):
    A = np.loadtxt(data_file("pitprops.csv"), delimiter=",")
    result = sparse_pca(covariance=A, n_nonzero_coefs=s, method="dspca", certify=False)
    assert result.value == pytest.approx(PITPROPS[s], rel=1e-9)
    bound = next(b for b in result.certificate.bounds if b.name == "dspca-dual")
    assert bound.value <= 1.06 * PITPROPS[s]


def test_dspca_keeps_about_and_exact_cardinalities():
    cov, _, _ = covariance_of_data(np.random.default_rng(0).standard_normal((40, 30)))
    problem = Problem(cov, (7,))
    about = dspca.run(problem, Options(), cardinality="about")
    exact = dspca.run(problem, Options(), cardinality="exact")
    assert 6 <= about.components[0].support.size <= 7
    assert exact.components[0].support.size == 7
    assert len(about.info["relaxations"]) <= len(exact.info["relaxations"])


def test_a_penalty_can_be_given():
    cov = covariance_of(gaussian(8, 3))
    found = dspca.run(Problem(cov, (8,)), Options(), penalty=0.4)
    (record,) = found.info["relaxations"]
    assert record["penalty"] == pytest.approx(0.4 * gaussian(8, 3).diagonal().max(), rel=1e-6)


def test_bad_input_is_refused_in_words():
    problem = Problem(covariance_of(gaussian(4)), (2,))
    for options, words in (
        ({"penalty": 1.5}, r"penalty=1\.5 must lie in \[0, 1\)"),
        ({"cardinality": "maybe"}, "cardinality must be"),
        ({"gap": 0.0}, "gap=0"),
        ({"max_solves": 0}, "max_solves=0"),
    ):
        with pytest.raises(ValueError, match=words):
            dspca.run(problem, Options(), **options)
    with pytest.raises(ValueError, match="no feature is worth its price"):
        ascend(np.eye(3), 1.0)


def test_standardised_columns_cannot_be_screened(monkeypatch):
    monkeypatch.setattr(dspca, "CORE_LIMIT", 4)
    with pytest.raises(ValueError, match="cannot be screened by variance"):
        dspca.run(Problem(covariance_of(np.eye(8)), (2,)), Options())


def test_no_convergence_is_said_with_numbers():
    point = dspca.solve_at(covariance_of(gaussian(20, 7)), 0.02, False, 1e-16)
    assert not point.relaxation.converged
    assert "duality gap" in dspca._note(point, 20, None, 1.0)


def test_bound_relaxations_that_stop_early_are_said():
    problem = Problem(covariance_of(gaussian(20, 7)), (3,))
    found = dspca.run(problem, Options(), gap=1e-12)
    assert "relaxations for the bound stopped above the gap of 1e-10 %" in found.note
    assert dspca.run(problem, Options(), gap=1e-2).note.count("for the bound") == 0


def twin_sweep(A, X, U, penalty, nonnegative, beta):
    """The sweep in NumPy, with the box QP solved well and nothing dropped."""
    n = A.shape[0]
    for j in range(n):
        rest = np.delete(np.arange(n), j)
        Y = X[np.ix_(rest, rest)]
        low = A[rest, j] - penalty
        high = np.full(n - 1, 1e300) if nonnegative else A[rest, j] + penalty
        u = np.clip(U[j, rest], low, high)
        for _ in range(300):
            for i in range(n - 1):
                u[i] = np.clip(u[i] - Y[i] @ u / Y[i, i], low[i], high[i])
        r2, trace = u @ Y @ u, np.trace(Y)
        c = A[j, j] - penalty - trace
        t = max(np.roots([1, c, -beta, -r2]).real)
        U[j, rest] = u
        X[rest, j] = X[j, rest] = Y @ u / t
        X[j, j] = c + t


@pytest.mark.kernels
@pytest.mark.parametrize("nonnegative", [False, True])
def test_dspca_kernel_matches_its_numpy_twin(nonnegative):
    n, penalty, beta = 6, 0.2, 0.05
    A = gaussian(n, 11)
    X, U = np.eye(n) * 0.3, A.copy()
    Y, V = X.copy(), U.copy()
    lists = np.zeros((n, n), dtype=np.int32), np.zeros(n, dtype=np.int64)
    work = np.empty(n), np.empty(n), np.empty(n)
    for _ in range(3):
        kernel.sweep(A, X, U, penalty, nonnegative, beta, 1e-14, *lists, *work, 5000)
        twin_sweep(A, Y, V, penalty, nonnegative, beta)
    np.testing.assert_allclose(X, Y, atol=1e-9)
    off = ~np.eye(n, dtype=bool)
    assert np.array_equal((X != 0) & off, _listed(*lists))


def _listed(neighbours: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    table = np.zeros(neighbours.shape, dtype=bool)
    for i, degree in enumerate(degrees):
        table[i, neighbours[i, :degree]] = True
    return table


@pytest.mark.kernels
@pytest.mark.parametrize("c", [-3.0, 0.0, 2.0])
@pytest.mark.parametrize("r2", [0.0, 1e-9, 4.0])
def test_dspca_scalar_root_solves_its_equation(c, r2):
    beta = 1e-3
    t = kernel.scalar_root(c, beta, r2)
    assert t > 0
    assert t**3 + c * t**2 - beta * t - r2 == pytest.approx(0, abs=1e-12)


def test_dspca_finds_topics_of_a_corpus_after_elimination():
    """KOS: five components of about five words after elimination to a few hundred of 6906."""
    from sparcipal import read

    table = read(data_file("docword.kos.txt.gz"))
    words = data_file("vocab.kos.txt").read_text().split()
    cov, _, _ = covariance_of_data(table.X)
    found = dspca.run(Problem(cov, (5,) * 5), Options())
    assert max(r["survivors"] for r in found.info["relaxations"]) < 600
    topics = [{words[i] for i in c.support} for c in found.components]
    assert any({"iraq", "war"} <= topic for topic in topics)
    assert any({"dean", "edwards", "clark"} <= topic for topic in topics)
    assert isinstance(found.bounds[0], Bound)


def two_directions(seed: int) -> np.ndarray:
    """Two overlapping directions of about the same worth, which the ascent alone weighs slowly."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((200, 2))
    X = 0.5 * rng.standard_normal((200, 24))
    X[:, :9] += scores[:, :1]
    X[:, 7:16] += scores[:, 1:]
    return X.T @ X / 200


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_both_solutions_are_finished_within_their_rules(seed, nonnegative):
    A = two_directions(seed)
    first = ascend(A, 0.3, nonnegative=nonnegative, tol=1e-4)
    # A worse start, and another one: the answer does not depend on them.
    starts = [Start(np.eye(24) / 24, A), Start(first.Z, first.dual)]
    for penalty in (0.29, 0.3, 0.33):
        found = ascend(A, penalty, nonnegative=nonnegative, tol=1e-4, starts=starts)
        assert found.converged
        assert np.linalg.eigvalsh(found.Z)[0] > -1e-9
        assert np.trace(found.Z) == pytest.approx(1.0)
        value = np.sum(A * found.Z) - penalty * np.abs(found.Z).sum()
        assert found.value == pytest.approx(value, rel=1e-9)
        U = found.dual - A
        assert U.min() >= -penalty * (1 + 1e-9)
        assert nonnegative or U.max() <= penalty * (1 + 1e-9)
        assert not nonnegative or found.Z.min() >= -1e-12
        assert np.linalg.eigvalsh(found.dual)[-1] == pytest.approx(found.bound, rel=1e-9)
        assert value - 1e-9 <= found.bound <= value * (1 + 1e-4) + 1e-9
        alone = ascend(A, penalty, nonnegative=nonnegative, tol=1e-4)
        assert alone.value == pytest.approx(found.value, rel=2e-4)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_plain_ascent_comes_to_the_same_value(nonnegative):
    """What is done before and after the sweeps saves some of them, and changes nothing else."""
    for seed in range(3):
        A = two_directions(seed)
        rules = {"nonnegative": nonnegative, "tol": 1e-3}
        plain, helped = (
            ascend(A, 0.3, sweeps=Sweeps(2000, alone), **rules) for alone in (True, False)
        )
        assert plain.converged
        assert helped.converged
        assert plain.looks > 0
        assert helped.n_iter <= plain.n_iter
        assert helped.value == pytest.approx(plain.value, rel=1e-3)
        assert helped.value <= plain.bound * (1 + 1e-12)
        assert plain.value <= helped.bound * (1 + 1e-12)


def test_power_steps_find_the_direction_of_a_spike():
    """Of A = I + 4 uu' with u on four features, at a penalty that leaves only these."""
    from sparcipal.search.finish import leading

    u = np.zeros(30)
    u[:4] = 0.5
    A = np.eye(30) + 4 * np.outer(u, u)
    x = leading(A, 0.5, False, soft_threshold(A, 0.5, False))
    np.testing.assert_allclose(x, u, atol=1e-6)
    y = leading(A, 0.5, True, soft_threshold(A, 0.5, True))
    np.testing.assert_allclose(y, u, atol=1e-6)


def test_dspca_solves_nothing_when_everything_is_explained():
    """Everything is explained after one component: the next relaxation has nothing to solve."""
    x = np.array([0.6, 0.8, 0.0])
    result = sparse_pca(
        covariance=np.outer(x, x) * 5,
        n_components=2,
        n_nonzero_coefs=2,
        method="dspca",
        supports="free",
        certify=False,
    )
    assert result.variances[0] == pytest.approx(5.0)
    assert abs(result.variances[1]) < 1e-9


def test_dspca_solves_nothing_where_only_the_diagonal_keeps_rounding_errors():
    covariance = covariance_of(np.eye(2))
    for w in np.eye(2):
        covariance = Downdated(covariance, w)
    covariance.diagonal = np.array([0.0, 2.8e-17])  # as deflated rows of data leave it
    found = dspca.run(Problem(covariance, (1,)), Options())
    assert found.components[0].weights.tolist() == [1.0]
    assert not found.bounds
    point = dspca.solve_at(covariance, 1.4e-17, True, 1e-3)  # where one entry alone is not zero
    assert point.loadings[point.core == 1].tolist() == [1.0]


def test_sweeps_end_when_the_run_is_stopped() -> None:
    A = gaussian(30)
    counts = []
    for limit in (None, 0.0):
        sweeps = Sweeps(plain=True, monitor=Monitor(time_limit=limit))
        found = ascend(A, 0.1, tol=1e-9, sweeps=sweeps)
        assert found.value <= found.bound
        counts.append(found.n_iter)
    assert counts[0] > 10
    assert counts[1] == 0
