"""The checker's cones, cores and replayed steps: what is a little too low is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Screened
from sparcipal.checker import cheap as bounds
from sparcipal.checker import core as extension
from sparcipal.checker import dropped as screened
from sparcipal.checker import dspca, kyfan
from sparcipal.checker import lowrank as sphere
from sparcipal.checker import pairsplit as split
from sparcipal.checker import tree as proof
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data

ONE = Question((2,), False, True, 0.0)
E = 2.0**-20


def halved(depth: int, orthants: int) -> np.ndarray:
    """The tree that halves the only edge of every plane cone `depth` times."""
    levels = [np.full(orthants * 2**level, 1) for level in range(depth)]
    return np.concatenate([*levels, np.full(orthants * 2**depth, -1)]).astype(np.int8)


@pytest.mark.parametrize("one_sign", [False, True])
def test_levels_of_plane_cones(one_sign):
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
            found = sphere.sphere(V, s, one_sign, prices, top * factor, tree)
            assert top <= found <= top * factor * (1 + 1e-9)
        for factor in (0.5, 0.99, 1 - 1e-5):
            assert sphere.sphere(V, s, one_sign, prices, top * factor, tree) == np.inf


def test_what_is_returned_is_above_what_was_tested(monkeypatch):
    monkeypatch.setattr(sphere, "EPS", E)
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    longest = np.sort((V * V).sum(axis=1))[::-1][:2].sum()
    top = np.linalg.eigvalsh(V.T @ V)[-1]
    for level, tree in ((longest, np.zeros(0, dtype=np.int8)), (top * 1.2, halved(6, 2))):
        level = float(min(level, longest * 1.5))
        margin = sphere._rounding(2, 2, float(longest), level)
        found = sphere.sphere(V, 2, False, np.zeros(3), level, tree)
        assert found >= (level + 2 * margin) * (1 - 1e-3 * E)
        assert found < level * 1.1


def test_copositive_matrices_are_told_truly():
    """Never yes where a nonnegative vector gives less than nothing, and yes for what is easy."""
    rng = np.random.default_rng(0)
    vectors = rng.random((4000, 3)) * (rng.random((4000, 3)) < 0.7)
    yes = 0
    for _ in range(300):
        B = rng.standard_normal((3, 3))
        S = (B @ B.T + np.abs(B + B.T) * rng.random()) * 0.5 - rng.random() * np.eye(3)
        told = bool(sphere.copositive(S[None])[0])
        yes += told
        least = np.einsum("ni,ij,nj->n", vectors, S, vectors).min()
        assert not told or least >= -1e-12
    assert yes > 60
    easy = np.array([np.eye(3), np.ones((3, 3)) + 1e-3 * np.eye(3), -np.eye(3), -np.ones((3, 3))])
    assert sphere.copositive(easy).tolist() == [True, True, False, False]
    # positive off the diagonal, in either order of elimination
    for S in ([[1.0, 5.0], [5.0, 1.0]], [[1.0, -0.9], [-0.9, 1.0]]):
        assert sphere.copositive(np.array([S])).all()
    for S in ([[1.0, -1.1], [-1.1, 1.0]], [[0.0, 1.0], [1.0, 1.0]], [[4.0, -2.1], [-2.1, 1.0]]):
        assert not sphere.copositive(np.array([S])).any()


def test_nystrom_of_sparse_rows_is_that_of_dense_ones():
    X = np.random.default_rng(9).poisson(1.0, (20, 5)) * np.array([3.0, 2.0, 1.0, 1.0, 1.0])
    dense = covariance_of_data(X, True, False, None, 1.0)[0]
    w, Q = np.linalg.eigh(dense.dense())
    V = Q[:, -2:] * np.sqrt(w[-2:])
    for data in (X, sp.csr_array(X)):
        cov = covariance_of_data(data, True, False, None, 1.0)[0]
        assert sphere._by_trace(cov, V) == pytest.approx(w[:3].sum(), rel=1e-9)


def test_nystrom_needs_a_condition_number():
    cov = covariance_of_data(np.outer(np.arange(5.0), [1.0, 2.0, 3.0]), True, False, None, 1.0)[0]
    assert sphere._by_trace(cov, np.eye(3)[:, :2]) == np.inf
    assert sphere._by_trace(cov, np.array([[1.0], [2.0], [3.0]])) < np.inf


# --- cores ---


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_core_of_an_extension(nonnegative, monkeypatch):
    """A_HH - U + Diag(pad + the s - 2 largest of V and copies of the pad)."""
    seen = []
    for module in (extension, split):
        monkeypatch.setattr(module, "EPS", E)
    monkeypatch.setattr(extension, "below", lambda M, t: seen.append(M) or True)
    rng = np.random.default_rng(1)
    A = np.cov(rng.standard_normal((9, 4)).T)
    u, r = rng.standard_normal(6) * 0.2, rng.standard_normal(6)
    step = {"features": np.arange(4), "u": u, "r": r}
    full, turn = np.zeros((4, 4)), np.zeros((4, 4))
    full[np.triu_indices(4, 1)], turn[np.triu_indices(4, 1)] = u, r
    full, turn = full + full.T, turn - turn.T
    v = split.pair_charges(full, turn, nonnegative)
    for s, pad in ((2, 0.1), (3, 0.1), (5, 0.05), (8, 0.3), (9, 3.0)):
        extension._check_core(step, A, s, pad, 1.0, nonnegative)
        for i in range(4):
            charges = sorted([*np.maximum(np.delete(v[i], i), pad), *[pad] * s], reverse=True)
            due = sum(charges[: s - 2]) * (1 + 8 * E) + pad
            assert seen[-1][i, i] >= (A[i, i] + due) * (1 - 1e-9)
        off = ~np.eye(4, dtype=bool)
        assert np.allclose(seen[-1][off], (A - full)[off])
        assert np.diagonal(seen[-1]).sum() <= np.trace(A) + 4 * s * max(v.max(), pad)


def test_cores_that_are_none():
    cov = covariance_of(np.eye(4), 1.0)
    data = {"pad": 0.5, "bound": 2.0, "split": {"clip": 0.0}}
    for core in ([1, 1], [2, 1], [], [-1, 0], [0, 4]):
        with pytest.raises((split.Unproved, IndexError)):
            extension.check_extension({**data, "core": core}, 2, False, cov)
        joint = {"features": core, "u": np.zeros(len(core) * (len(core) - 1) // 2)}
        joint |= {"r": joint["u"], "price": np.zeros(len(core)), "pad": 0.5}
        if core != [2, 1]:  # whose order does not matter here
            with pytest.raises(ValueError, match="core"):
                kyfan.recheck(joint, cov, ONE)
    for number in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(split.Unproved):
            extension.check_extension({**data, "core": [0, 1], "pad": number}, 2, False, cov)
    with pytest.raises(split.Unproved):
        extension.check_extension({**data, "core": [0, 1], "bound": np.nan}, 2, False, cov)


def test_given_matrices_are_not_dismissed_by_variances(monkeypatch):
    """Where nobody promises a PSD matrix, a small variance may stand beside a large entry."""
    A = np.diag([1.0, 1.0, 1e-3, 1e-3])
    A[0, 2] = A[2, 0] = 0.9
    core, theta, price = np.array([0, 1]), np.full(2, 0.5), np.zeros(2)
    found = kyfan.outside_rows(covariance_of(A, 1.0), core, theta, price, 2, False, 1.0)
    assert found[0] >= 1e-3 + 0.81 / 0.5
    seen = []
    monkeypatch.setattr(kyfan, "_up", lambda charges, *rest: seen.append(charges) or np.zeros(2))
    X = np.random.default_rng(2).standard_normal((9, 4))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 0.05
    kyfan.outside_rows(own, core, theta, price, 2, False, 9.0)
    variance = own.diagonal + 0.05 * own.weights
    assert (seen[0][:, :2] >= np.outer(variance[2:], variance[:2]) / 0.5 * (1 - 1e-12)).all()
    assert (seen[0][:, 2] >= np.sqrt(variance[2:] * variance[2:].max()) * (1 - 1e-12)).all()


def test_the_matrix_of_the_dspca_dual(monkeypatch):
    seen = []
    monkeypatch.setattr(dspca, "ky_fan", lambda M, k: seen.append(M) or 1.0)
    A = np.eye(3) + 0.5
    moved = np.array([-0.3, 0.1, 0.2])
    data = {"penalty": 0.3, "core": [0, 1, 2], "moved": moved}
    dspca.recheck(data, covariance_of(A, 1.0), ONE)
    U = np.array([[0.0, -0.3, 0.1], [-0.3, 0.0, 0.2], [0.1, 0.2, 0.0]])
    assert np.allclose(seen[0][:3, :3], A + U - 0.3 * np.eye(3))
    assert not seen[0][3:].any()
    for wrong in ({"penalty": 0.29}, {"core": [0, 1, 1]}, {"penalty": np.nan}, {"core": [0, 1, 3]}):
        assert dspca.recheck({**data, **wrong}, covariance_of(A, 1.0), ONE) == np.inf
    high = {**data, "moved": np.array([0.4, 0.1, 0.2])}
    assert dspca.recheck(high, covariance_of(A, 1.0), ONE) == np.inf
    positive = Question((2,), True, True, 0.0)
    assert dspca.recheck(high, covariance_of(A, 1.0), positive) < np.inf


def test_errors_of_the_covariance_are_added():
    X = np.random.default_rng(5).standard_normal((9, 4))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    split_data = {"features": np.arange(4), "u": np.full(6, 0.1), "r": np.zeros(6)}
    split_data |= {"price": np.zeros(4), "pad": 0.1}
    plain = [kyfan.recheck(split_data, own, ONE), bounds.enumeration({}, own, ONE)]
    own.error_unit += 1e-3
    more = [kyfan.recheck(split_data, own, ONE), bounds.enumeration({}, own, ONE)]
    due = 1e-3 * np.sort(own.weights)[::-1][:2].sum()
    assert np.allclose(np.array(more) - plain, due, rtol=1e-6)


def test_charges_of_rows_outside_the_core(monkeypatch):
    """A feature outside takes the smallest charge that a row of the core pays anyway."""
    seen = []
    outside = lambda cov, core, theta, *rest: seen.append(theta) or np.zeros(2)  # noqa: E731
    monkeypatch.setattr(kyfan, "outside_rows", outside)
    data = {"features": [0, 1, 2], "u": [0.3, 0.2, 0.1], "r": np.zeros(3)}
    data |= {"price": np.zeros(3), "pad": 0.15}
    cov = covariance_of(np.eye(5), 1.0)
    kyfan.spectrum(data, cov, Question((2,), False, True, 0.0))
    kyfan.spectrum(data, cov, Question((3,), False, True, 0.0))
    kyfan.spectrum(data, cov, Question((1,), False, True, 0.0))
    assert np.allclose(seen[0], [0.3, 0.3, 0.2])
    assert np.allclose(seen[1], [0.2, 0.15, 0.15])
    assert np.isinf(seen[2]).all()


def test_supports_that_are_passed_over_count_in_full(monkeypatch):
    A = np.array([[2.0, -0.5, 0.3], [-0.5, 2.0, 0.2], [0.3, 0.2, 1.0]])
    mixed = []

    def quotients(blocks, vectors):
        both = (vectors.min(axis=1) < -1e-7) & (vectors.max(axis=1) > 1e-7)
        mixed.extend(both)
        return bounds._proved_tops(blocks, np.linalg.eigvalsh(blocks)[:, -1]) - 0.25 * both

    monkeypatch.setattr(bounds, "_rayleigh", quotients)
    _, supports, lost = bounds._scored(A, [1, 2], True)
    assert any(mixed)
    assert lost == pytest.approx(0.25)
    assert (0, 1) not in supports


# --- steps of a log ---


def header(**more):
    plain = {"unit": 1.0, "s": 2, "nonnegative": True, "bound": 1.0, "step": "problem"}
    return {**plain, **more}


def test_shrinking_is_for_full_nonnegative_supports():
    A = np.array([[2.0, -0.5, 0.1], [-0.5, 2.0, 0.1], [0.1, 0.1, 1.0]])
    both = np.array([True, True, False])
    none = np.zeros(3, dtype=bool)
    step = {"end": "shrink"}
    good = proof._Replay([header(bound=2.2)], A)
    good._settle(1, step, both, both)
    assert good.pending[1] == {"shrink": {0, 1}}
    for log, alive, forced in (
        (header(bound=2.2), both, none),
        (header(bound=2.2, nonnegative=False), both, both),
        (header(bound=2.2, prices=np.full(3, 0.1)), both, both),
        (header(bound=1.4), both, both),
    ):
        with pytest.raises(split.Unproved):
            proof._Replay([log], A)._settle(1, step, alive, forced)
    plus = np.abs(A)  # its vector is positive
    with pytest.raises(split.Unproved):
        proof._Replay([header(bound=2.2)], plus)._settle(1, step, both, both)


def test_what_a_log_may_say_of_its_problem(monkeypatch):
    A = np.eye(3) + 0.25
    for wrong in (
        {"pads": [0.1, -0.1, 0.1]},
        {"pads": [0.1, 0.1]},
        {"twins": {"features": [1], "leaders": [0], "factors": [1.5]}},
        {"twins": {"features": [1], "leaders": [0], "factors": [-0.5]}},
        {"twins": {"features": [1, 0], "leaders": [0, 2], "factors": [0.5, 0.5]}},
        {"s": 0},
        {"s": 4},
        {"bound": np.nan},
    ):
        with pytest.raises((split.Unproved, ValueError)):
            proof._Replay([header(**wrong)], A)
    own = covariance_of_data(
        np.random.default_rng(7).standard_normal((9, 3)), True, False, None, 1
    )[0]
    own.error_unit = 1e-3
    monkeypatch.setattr(proof, "replay", lambda log, a: 1.0)
    found = proof.recheck({"log": [header(nonnegative=False)]}, own, ONE)
    assert found == pytest.approx(1.0 + own.rounding(2))


def test_nodes_that_are_the_same():
    A = np.eye(3)
    alive, forced = np.ones(3, dtype=bool), np.array([True, False, False])
    replayed = proof._Replay([header()], A)
    replayed.entered = {1: (alive, forced), 2: (alive, forced)}
    replayed._settle(2, {"end": "same", "node": 1}, alive, forced)
    for node, own, held in (
        (2, alive, forced),
        (3, alive, forced),
        (1, alive, ~forced),
        (1, np.array([True, True, False]), forced),
    ):
        with pytest.raises((split.Unproved, KeyError)):
            replayed._settle(2, {"end": "same", "node": node}, own, held)
    with pytest.raises(split.Unproved, match="open"):
        replayed._settle(2, {"end": "later"}, alive, forced)
    for wrong in (header(prices=np.array([0.1, -0.1, 0.0])), header(step="node")):
        with pytest.raises(split.Unproved):
            proof.replay([wrong], A)


def test_rows_without_a_choice_have_nothing_to_lose(monkeypatch):
    asked = []
    monkeypatch.setattr(
        proof, "_small_test", lambda B, room, drop: asked.append((room, drop)) or True
    )
    monkeypatch.setattr(proof, "_majorant", lambda M, t: (np.zeros((4, 2)), 0.25))
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 0.5), "r": np.zeros(6)}
    replayed = proof._Replay([header(bound=5.0), step], np.eye(4) + 0.5)
    alive, forced = np.ones(4, dtype=bool), np.array([True, False, False, False])
    replayed._check_fixing(1, alive, forced, np.array([1]), np.array([2]))
    for room, drop in asked:
        assert room == 4.75
        assert not drop[1:].any()


def test_vectors_of_both_signs_need_an_angle(monkeypatch):
    """A negative entry counts only where rounding could not have made it."""
    fine = 2.0**-46  # the majorant leaves 1e-10 for the rounding of the rest
    for module in (proof, split):
        monkeypatch.setattr(module, "EPS", fine)
    angle = 2 * (16 * fine * 2.0) / 1.5 + 16 * fine
    close = 2 * (16 * fine * 1.2) / 0.3 + 16 * fine
    for entry, top, rest, told in (
        (1e-2, 2.0, 0.5, True), (2 * angle, 2.0, 0.5, True), (0.8 * angle, 2.0, 0.5, False),
        (-0.1, 2.0, 0.5, False), (2 * close, 1.2, 0.9, True), (0.8 * close, 1.2, 0.9, False),
    ):  # fmt: skip
        q = np.array([np.sqrt(1 - entry**2), -entry])
        block = top * np.outer(q, q) + rest * (np.eye(2) - np.outer(q, q))
        w, vectors = np.linalg.eigh(block)
        for sign in (-1.0, 1.0):  # LAPACK may return either
            pair = (w, vectors * sign)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(np.linalg, "eigh", lambda block, pair=pair: pair)
                assert proof._no_positive_eigenvector(block, 1.0) is told
    assert proof._no_positive_eigenvector(np.eye(2), 1.1)
    assert not proof._no_positive_eigenvector(np.eye(2), 0.9)


def test_vectors_of_equal_eigenvalues_say_nothing(monkeypatch):
    Q = np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]) / np.sqrt([2.0, 6.0, 3.0])
    for gap, told in ((0.0, False), (1e-14, False), (0.5, True)):
        block = (Q * np.array([2.0 + gap, 2.0, 0.5])) @ Q.T
        assert proof._no_positive_eigenvector((block + block.T) / 2, 1.0) is told
    # what is left must lie below t, with room for its rounding
    block = (Q * np.array([2.0, 0.25, 0.5])) @ Q.T
    assert proof._no_positive_eigenvector((block + block.T) / 2, 0.6)
    assert not proof._no_positive_eigenvector((block + block.T) / 2, 0.5 + 1e-11)
    seen = []
    monkeypatch.setattr(proof, "EPS", E)
    monkeypatch.setattr(proof, "below", lambda M, t: seen.append(t) or True)
    proof._no_positive_eigenvector(np.diag([2.0, 0.5, 0.25]), 1.0)
    assert seen[0] <= 0.5 + 1e-9 - 8 * 3 * E * 2.0 * (1 - 1e-9)


def test_weights_of_samples_are_checked():
    X = np.ones((4, 2))
    for weights in ([1.0, 1.0], [1.0, 1.0, -1.0, 1.0], [1.0, np.nan, 1.0, 1.0], np.zeros(4)):
        with pytest.raises(ValueError, match="sample_weight"):
            covariance_of_data(X, True, False, weights, 1.0)


@pytest.mark.parametrize("center", [True, False])
def test_standardised_sparse_columns(center):
    X = np.random.default_rng(4).poisson(1.0, (30, 4)) * [1.0, 2.0, 5.0, 0.5]
    dense = covariance_of_data(X, center, True, None, 1.0)
    sparse = covariance_of_data(sp.csr_array(X), center, True, None, 1.0)
    assert np.allclose(dense[0].dense(), sparse[0].dense(), rtol=1e-12, atol=1e-14)
    assert np.allclose(dense[2], sparse[2], rtol=1e-12)
    if center:
        assert np.allclose(sparse[0].dense(), np.corrcoef(X.T), atol=1e-12)
    weights = np.array([1.0, 2.0, 0.0, 3.0] * 7 + [1.0, 0.0])
    plain = np.cov(X.T, aweights=weights, ddof=0)
    for data in (X, sp.csr_array(X)):
        assert np.allclose(covariance_of_data(data, True, False, weights, 1.0)[0].dense(), plain)


def test_leaves_that_features_outside_may_join():
    A = np.eye(3) * 0.5
    alive, forced = np.array([True, True, False]), np.array([True, False, False])
    both = np.array([True, True, False])
    plain = proof._Replay([header(nonnegative=False)], A)
    plain._settle(1, {"end": "leaf"}, alive, forced)
    padded = proof._Replay([header(nonnegative=False, pads=np.full(3, 0.1))], A)
    padded._settle(1, {"end": "leaf"}, both, both)
    with pytest.raises(split.Unproved, match="join"):
        padded._settle(1, {"end": "leaf"}, alive, forced)


def test_closed_nodes_are_factored():
    """The matrix of the node, not its charges: those are smaller than many a bound."""
    A = np.eye(4) + 0.5
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 0.1), "r": np.zeros(6)}
    alive, forced = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
    node = {"end": "closed", "split": 1}
    for bound, proved in ((3.0, True), (1.5, False), (0.5, False)):
        replayed = proof._Replay([header(bound=bound, nonnegative=False), step], A)
        if proved:
            replayed._settle(2, node, alive, forced)
        else:
            with pytest.raises(split.Unproved, match="too large"):
                replayed._settle(2, node, alive, forced)


def test_every_leaf_is_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(sphere, "CHUNK", 12)
    monkeypatch.setattr(
        sphere, "copositive", lambda S: seen.append(len(S)) or np.ones(len(S), dtype=bool)
    )
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    sphere.sphere(V, 2, False, np.zeros(3), 0.1, halved(3, 2))
    assert sum(seen) == 16
    assert max(seen) == 3


def test_short_rows_in_another_direction():
    V = np.array([[1.0, 0.0]] * 300 + [[0.0, 0.9]] * 100)
    points, pairs = np.eye(2), np.array([[0, 0], [0, 1], [1, 1]])
    found = sphere.pair_sums(V, (V * V).sum(axis=1), np.zeros(400), 3, False, points, pairs)
    assert found == pytest.approx([3.0, 0.0, 3 * 0.81])


@pytest.mark.parametrize("nonnegative", [False, True])
def test_given_matrices_that_are_not_psd(nonnegative):
    """Entries may be larger than variances allow; what is missing is in every rule."""
    A = np.array([[1.0, 1.05, 0.0], [1.05, 1.0, 0.0], [0.0, 0.0, 0.5]])
    question = Question((2,), nonnegative, True, 0.0)
    cov = covariance_of(A, 1.0)
    assert bounds.gershgorin({}, cov, question) >= 2.05
    assert bounds.trace({}, cov, question) >= 2.05
    given = Screened(A[:2, :2], np.array([0, 1]), np.diagonal(A).copy())
    own = screened.of_given(given, np.array([0, 1]), 1.0)
    found = screened.touching({"rule": "variances"}, 9.0, own, Question((3,), False, True, 0.0))
    assert found >= 2.0 + 2 * 0.05 + 0.5


def test_errors_of_kept_features_count_for_dropped_ones():
    X = np.random.default_rng(8).standard_normal((30, 4)) * [3.0, 2.5, 0.3, 0.2]
    cov = screened.of_data(X, np.arange(2), True, False, None, 1.0)[0]
    question = Question((3,), False, True, 0.0)
    plain = screened.touching({"rule": "variances"}, 99.0, cov, question)
    cov.inner.error_unit = 1e-3
    more = screened.touching({"rule": "variances"}, 99.0, cov, question)
    assert more - plain >= 1e-3 * cov.inner.weights.sum() * (1 - 1e-6)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_rows_that_reach_their_limit(nonnegative):
    """Of rank one: every entry is as large as variances allow."""
    for row in ([2.0, 1.5, 1.0, 0.5], [1.0, 1.0, 1.0, 1.0]):
        X = np.outer([1.0, -1.0, 2.0, -2.0], row)
        cov = covariance_of_data(X, True, False, None, 1.0)[0]
        for s in (1, 2, 3, 4):
            plain = cov.dense()[0, :s].sum()
            found = bounds.gershgorin({}, cov, Question((s,), nonnegative, True, 0.0))
            assert plain * (1 - 1e-14) <= found <= plain * (1 + 1e-11)


def test_dropped_features_and_prices(monkeypatch):
    """A component may lie outside the kept features, and prices are rounded up."""
    asked = []

    def spectrum(data, cov, question, floor, empty=False):
        asked.append((floor, empty))
        return 1.0, np.array([0.5, 0.25])

    monkeypatch.setattr(screened.kyfan, "spectrum", spectrum)
    monkeypatch.setattr(screened, "EPS", E)
    X = np.random.default_rng(6).standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 0.3, 0.2]
    cov = screened.of_data(X, np.arange(4), True, False, None, 1.0)[0]
    cov.inner.error_unit = 0.0
    v = np.sort(np.delete(cov.upper, np.arange(4)))[::-1]
    data = {"rule": "prices", "price": 0.125, "split": {}}
    found = screened.touching(data, 100.0, cov, Question((3,), False, True, 0.0))
    one = 1.0 + (0.5 + 0.25) * (1 + 3 * E) + v[0]
    two = 1.0 + 0.5 * (1 + 3 * E) + v[:2].sum()
    assert asked == [(0.125, True)]
    assert max(one, two) * (1 + 7 * E) * (1 - 1e-9) <= found <= max(one, two) * (1 + 1e-4)
    cov.inner.error_unit = 1e-3
    more = screened.touching(data, 100.0, cov, Question((3,), False, True, 0.0))
    assert more - found >= cov.inner.rounding(3) * (1 - 1e-6)
