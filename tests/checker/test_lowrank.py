"""Low-rank bounds, redone: cones, majorants, and their margins."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal.checker import lowrank as sphere
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.cheap import psd_shift
from sparcipal.checker.covariance import covariance_of, covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.records import LowRank
from tests.support.margins import LESS, E, charges, from_data, matrices, one
from tests.support.replay import FLOAT, level_of, recheck


def by_trace(cov, V):
    return sphere._by_trace(V, Case(cov, None, FLOAT, Budget()))


@pytest.mark.parametrize("nonnegative", [False, True])
def test_clipped_dominates_on_sparse_vectors(nonnegative):
    """x'Ax <= x'Bx for every x of s nonzeros, and no row pays more than s - 1 entries."""
    for A, rng in matrices(10):
        s, rho = int(rng.integers(1, 7)), 0.2
        B = sphere._clipped(A, rho, s, nonnegative, FLOAT)
        moved = np.clip(A - np.diag(np.diagonal(A)), -np.inf if nonnegative else -rho, rho)
        plain = A - moved + np.diag(charges(moved, s, nonnegative).sum(axis=1))
        assert np.allclose(B, plain, rtol=0, atol=1e-14)
        for _ in range(20):
            x = np.zeros(6)
            x[rng.permutation(6)[:s]] = rng.standard_normal(s)
            x = np.abs(x) if nonnegative else x
            assert x @ A @ x <= x @ B @ x + 1e-14


@pytest.mark.parametrize("nonnegative", [False, True])
def test_pair_sums_equal_those_of_all_rows(nonnegative, monkeypatch):
    """All rows one by one; short rows are left out only where they cannot be chosen."""
    rng = np.random.default_rng(5)
    p, r, s = 900, 3, 2
    V = rng.standard_normal((p, r)) * rng.permutation(np.geomspace(1, 0.3, p))[:, None]
    V = V[np.argsort(-(V * V).sum(axis=1))]
    points = np.vstack([np.eye(r), rng.random((5, r))])  # of one orthant, as in a cone
    pairs = np.array([(i, j) for i in range(8) for j in range(i, 8)])
    for prices in (np.zeros(p), rng.random(p) * 0.2):
        sketch = sphere._Sketch(V, prices, (V * V).sum(axis=1), s, nonnegative)
        found = sphere._pair_sums(sketch, points, pairs, FLOAT)
        for (i, j), value in zip(pairs, found):
            x, y = V @ points[i], V @ points[j]
            gain = np.maximum(x, 0) * np.maximum(y, 0) if nonnegative else x * y
            gain = gain - prices * (points[i] @ points[j])
            plain = np.maximum(np.sort(gain)[::-1][:s], 0.0).sum()
            assert value == pytest.approx(plain, rel=1e-12, abs=1e-14)


def test_sphere_gives_its_bound_in_units_of_the_rows():
    """Long and short rows are brought to one size; the bound comes back in theirs."""
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    for size in (2.0**-30, 1.0, 2.0**20):
        top = float(np.sort((V * V).sum(axis=1))[::-1][:2].sum())
        for price in (0.0, 0.05):
            prices, tree = np.full(3, price * size**2), np.zeros(0, dtype=np.int8)
            due = float(np.sort((V * V).sum(axis=1) - price)[::-1][:2].sum())
            level = due * size**2 * (1 + 1e-9)
            found = level_of(V * size, 2, False, prices, level, tree)
            assert due * size**2 <= found <= level * (1 + 1e-12)
        with pytest.raises(Refused, match="malformed"):  # no tree, and the rows are too long
            level_of(V * size, 2, False, np.zeros(3), 0.9 * top * size**2, tree)


def test_by_trace_adds_what_is_missing_to_a_psd_matrix():
    """What is missing to a PSD matrix is added before anything is split off."""
    A = np.diag([4.0, 3.0, 0.5, 0.25]) + 0.1
    A[3, 3] = -0.2
    own = covariance_of(A, 1.0)
    shift = psd_shift(Case(own, None, FLOAT, Budget()))
    B = A + shift * np.eye(4)
    V = B[:, :2] * 0.5
    Q = np.linalg.qr(V)[0]
    split_off = B @ Q @ np.linalg.inv(Q.T @ B @ Q) @ Q.T @ B
    apart = np.linalg.norm(split_off - V @ V.T)
    found = by_trace(own, V)
    assert found == pytest.approx(np.trace(B - split_off) + apart, rel=1e-9)


@pytest.mark.usefixtures("coarse")
def test_recheck_of_a_sketch_keeps_its_margins(monkeypatch):
    cov = from_data(4)
    prices = np.array([0.1, 0.0, 0.2, 0.0])
    data = {"V": np.ones((4, 1)), "s": 2, "level": 1.0, "shift": 0.5, "nonnegative": False,
            "prices": prices, "proof": "features", "tree": np.zeros(0, dtype=np.int8)}  # fmt: skip
    monkeypatch.setattr(sphere, "majorant", lambda *given: 0.5)
    monkeypatch.setattr(sphere, "sphere", lambda *given: 1.0)
    largest = np.sort(cov.diagonal)[::-1][:2].sum()
    for question in (one(2), one(2, 2)):
        k = question.k
        plain = k * (1.5 + 2 * E * largest) + 0.3
        assert recheck("lowrank", data, cov, question) >= plain * (1 + 4 * (4 + k) * E) * LESS
    cov.error_unit = 1e-3
    assert recheck("lowrank", data, cov, one(2, 2)) >= 3.3 + 2 * cov.rounding(2)


@pytest.mark.usefixtures("coarse")
def test_factored_majorants_keep_their_margins(factored):
    cov = from_data(6)
    A, shift = cov.dense(), 0.5
    for error, V in ((0.0, np.full((6, 2), 0.1)), (1e-3, np.full((6, 2), 2.0))):
        cov.error_unit = error
        claim = sphere._by_features(A, V, shift, FLOAT)
        tested = factored[-1][0, 0] + (A - V @ V.T)[0, 0]
        size = np.trace(A) + (V * V).sum() + 7 * shift
        due = 28 * E * size + 2 * 8 * E * np.trace(V @ V.T - A + shift * np.eye(6))
        assert claim - tested >= due * LESS
        assert tested > shift
        claim = sphere._by_samples(cov, V, shift, FLOAT)
        weight, gamma = cov.weights.sum(), 2 * (6 + 16) * E
        wide = (V * V).sum()
        stretch = 1 + 2 * np.sqrt(wide / shift)
        due = (gamma * stretch + 4 * (20 + 16) * E + error) * (weight + 20 * shift)
        level = claim - due
        assert level >= (shift + 3 * due) * LESS
        # the small matrix is made larger by its own rounding
        X, W = cov._left, np.column_stack([V, np.zeros(6)])
        inner = W.T @ W + (level + gamma * wide) * np.eye(3)
        K = X @ W @ np.linalg.solve(inner, (X @ W).T) - X @ X.T + level * np.eye(20)
        assert np.allclose(factored[-1], K, atol=1e-9)
    assert (
        np.diagonal(sphere._clipped(A, 0.1, 3, False, FLOAT)).sum()
        >= (np.trace(A) + charges(np.clip(A, -0.1, 0.1), 3, False).sum() * (1 + 10 * E)) * LESS
    )


@pytest.mark.usefixtures("coarse")
def test_by_trace_keeps_its_margins():
    for error, scale in ((0.0, 0.25), (1e-3, 0.25), (0.0, 4.0), (1e-3, 4.0)):
        cov = from_data(6, scale)
        w, Q = np.linalg.eigh(cov.dense())
        V = Q[:, -2:] * np.sqrt(w[-2:])
        plain = w[:4].sum()
        cov.error_unit = error
        due = 4 * (8 * 22 * E + error) * cov.weights.sum() * w[-1] / w[-2]
        assert by_trace(cov, V) >= (plain + due) * LESS
    assert by_trace(cov, V * [1.0, 0.9]) >= plain + 0.18 * w[-1]


def halved(depth: int, orthants: int) -> np.ndarray:
    """The tree that halves the only edge of every plane cone `depth` times."""
    levels = [np.full(orthants * 2**level, 1) for level in range(depth)]
    return np.concatenate([*levels, np.full(orthants * 2**depth, -1)]).astype(np.int8)


@pytest.mark.parametrize("one_sign", [False, True])
def test_sphere_proves_levels_above_the_optimum_only(one_sign):
    angles = np.linspace(0, 2 * np.pi, 20001)
    c = np.vstack([np.cos(angles), np.sin(angles)])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p, s = (400 if seed == 4 else 7), int(rng.integers(1, 4))
        V = rng.standard_normal((p, 2)) * 2.0 ** rng.integers(-3, 4)
        if p > 256:  # the rows that count are the last ones, and shorter than most
            V = (
                np.array([[1.0, 0.0]] * 300 + [[0.9, 0.3]] * 100)
                * np.geomspace(1, 0.99, p)[:, None]
            )
        prices = rng.random(p) * (V * V).sum() / p / 6 * (seed % 2)
        reach = V @ c
        gains = (np.maximum(reach, 0.0) if one_sign else reach) ** 2 - prices[:, None]
        top = float(np.maximum(np.sort(gains, axis=0)[-s:], 0.0).sum(axis=0).max())
        tree = halved(7, 4 if one_sign else 2)
        for factor in (1.001, 1.1):
            found = level_of(V, s, one_sign, prices, top * factor, tree)
            assert top <= found <= top * factor * (1 + 1e-9)
        for factor in (0.5, 0.99, 1 - 1e-5):
            assert level_of(V, s, one_sign, prices, top * factor, tree) == np.inf


@pytest.mark.usefixtures("coarse")
def test_sphere_returns_more_than_it_tested():
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    longest = np.sort((V * V).sum(axis=1))[::-1][:2].sum()
    top = np.linalg.eigvalsh(V.T @ V)[-1]
    for level, tree in ((longest, np.zeros(0, dtype=np.int8)), (top * 1.2, halved(6, 2))):
        level = float(min(level, longest * 1.5))
        margin = 2 * E * ((8 + 2 + 20) * float(longest) + (12 + 12) * level)
        found = level_of(V, 2, False, np.zeros(3), level, tree)
        assert found >= (level + 2 * margin) * (1 - 1e-3 * E)
        assert found < level * 1.1


def test_copositive_is_never_claimed_wrongly():
    """Never yes where a nonnegative vector gives less than nothing, and yes for what is easy."""
    rng = np.random.default_rng(0)
    vectors = rng.random((4000, 3)) * (rng.random((4000, 3)) < 0.7)
    yes = 0
    for _ in range(300):
        B = rng.standard_normal((3, 3))
        S = (B @ B.T + np.abs(B + B.T) * rng.random()) * 0.5 - rng.random() * np.eye(3)
        told = bool(sphere.copositive(S[None], FLOAT)[0])
        yes += told
        least = np.einsum("ni,ij,nj->n", vectors, S, vectors).min()
        assert not told or least >= -1e-12
    assert yes > 60
    easy = np.array([np.eye(3), np.ones((3, 3)) + 1e-3 * np.eye(3), -np.eye(3), -np.ones((3, 3))])
    assert sphere.copositive(easy, FLOAT).tolist() == [True, True, False, False]
    # positive off the diagonal, in either order of elimination
    for S in ([[1.0, 5.0], [5.0, 1.0]], [[1.0, -0.9], [-0.9, 1.0]]):
        assert sphere.copositive(np.array([S]), FLOAT).all()
    for S in ([[1.0, -1.1], [-1.1, 1.0]], [[0.0, 1.0], [1.0, 1.0]], [[4.0, -2.1], [-2.1, 1.0]]):
        assert not sphere.copositive(np.array([S]), FLOAT).any()


def test_by_trace_of_sparse_rows_is_that_of_dense_ones():
    X = np.random.default_rng(9).poisson(1.0, (20, 5)) * np.array([3.0, 2.0, 1.0, 1.0, 1.0])
    dense = covariance_of_data(X, True, False, None, 1.0)[0]
    w, Q = np.linalg.eigh(dense.dense())
    V = Q[:, -2:] * np.sqrt(w[-2:])
    for data in (X, sp.csr_array(X)):
        cov = covariance_of_data(data, True, False, None, 1.0)[0]
        assert by_trace(cov, V) == pytest.approx(w[:3].sum(), rel=1e-9)


def test_by_trace_is_infinite_without_variance_in_a_direction():
    cov = covariance_of_data(np.outer(np.arange(5.0), [1.0, 2.0, 3.0]), True, False, None, 1.0)[0]
    assert by_trace(cov, np.eye(3)[:, :2]) == np.inf
    assert by_trace(cov, np.array([[1.0], [2.0], [3.0]])) < np.inf


def test_sphere_looks_at_every_leaf(monkeypatch):
    seen = []
    monkeypatch.setattr(sphere, "CHUNK", 96)
    monkeypatch.setattr(
        sphere, "copositive", lambda S, ar: seen.append(len(S)) or np.ones(len(S), dtype=bool)
    )
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    level_of(V, 2, False, np.zeros(3), 0.1, halved(3, 2))
    assert sum(seen) == 16
    assert max(seen) == 3


def test_pair_sums_count_short_rows_in_another_direction():
    V = np.array([[1.0, 0.0]] * 300 + [[0.0, 0.9]] * 100)
    points, pairs = np.eye(2), np.array([[0, 0], [0, 1], [1, 1]])
    sketch = sphere._Sketch(V, np.zeros(400), (V * V).sum(axis=1), 3, False)
    found = sphere._pair_sums(sketch, points, pairs, FLOAT)
    assert found == pytest.approx([3.0, 0.0, 3 * 0.81])


def test_factored_by_samples_is_as_good_as_by_features():
    """A <= t I + VV' by an n x n factorisation: as good as the one by features, and no better."""
    X = np.random.default_rng(6).standard_normal((8, 20)) * np.geomspace(3, 0.2, 20)
    for center in (True, False):
        own = covariance_of_data(X, center, False, None, 1.0)[0]
        w, Q = np.linalg.eigh(own.dense())
        V = np.ascontiguousarray(Q[:, -2:] * np.sqrt(w[-2:] - w[-3]))
        for proved in (
            sphere._by_samples(own, V, w[-3], FLOAT),
            sphere._by_features(own.dense(), V, w[-3], FLOAT),
        ):
            assert w[-3] < proved <= w[-3] * (1 + 1e-9)
        for shift in (0.999 * w[-3], 0.1 * w[-3], -1.0):
            assert sphere._by_samples(own, V, shift, FLOAT) == np.inf
            assert sphere._by_features(own.dense(), V, shift, FLOAT) == np.inf


def test_a_tree_that_is_one_long_chain_is_charged_by_its_levels():
    """Each level costs the same however few its cones are, and is not copied again."""
    V = np.full((6, 2), 0.3)
    chain = [1, -1] * 20_000 + [-1, -1]
    record = LowRank(
        V=V,
        proof="features",
        shift=3.0,
        s=2,
        nonnegative=False,
        level=0.001,
        tree=np.array(chain, dtype=np.int8),
    )
    with pytest.raises(Refused, match="a tree of cones: the replay takes"):
        sphere.sphere(record, np.zeros(6), 2, FLOAT, Budget(work=1e7))
    with pytest.raises(Refused, match="off the grid"):
        sphere.sphere(record, np.zeros(6), 2, FLOAT, Budget())


def test_a_short_tree_of_many_cones_is_not_expanded_at_once():
    """98 kB that name 65,536 leaves of 256 pairs each, about 1 GB if all are written out."""
    n, r = 2**15, 16
    tree = np.concatenate([np.full(n, 1, dtype=np.int8), np.full(2 * n, -1, dtype=np.int8)])
    V = np.random.default_rng(0).standard_normal((20, r))
    record = LowRank(
        V=V, proof="features", shift=0.0, s=3, nonnegative=False, level=60.0, tree=tree
    )
    tracemalloc.start()
    try:
        with np.errstate(all="ignore"):
            sphere.sphere(record, np.zeros(20), 3, FLOAT, Budget())
        assert tracemalloc.get_traced_memory()[1] < 3e8
    finally:
        tracemalloc.stop()
    with pytest.raises(Refused, match="a tree of cones"):
        sphere.sphere(record, np.zeros(20), 3, FLOAT, Budget(work=1e8))
    with pytest.raises(Refused, match="GiB"):
        sphere.sphere(record, np.zeros(20), 3, FLOAT, Budget(memory=1e7))
