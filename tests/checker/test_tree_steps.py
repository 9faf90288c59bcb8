"""Steps of a replayed log, one at a time: twins, branches, fixing, leaves, and their margins."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker import pairsplit as split
from sparcipal.checker import tree as proof
from sparcipal.checker.covariance import Question, covariance_of_data
from tests.support import oracle
from tests.support.margins import LESS, E, matrices


def header(**more):
    plain = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 9.0, "step": "problem"}
    return {**plain, **more}


def test_branch_takes_out_a_feature_with_its_twins_only():
    """Out with a feature go multiples of it that are no longer and no cheaper."""
    A = np.outer([1.0, 0.5, 0.25, 1.0], [1.0, 0.5, 0.25, 1.0])
    A[3] = A[:, 3] = [0.0, 0.0, 0.0, 1.0]
    twins = {"features": [1, 2], "leaders": [0, 0], "factors": [0.5, 0.25]}
    replayed = proof._Replay([header(twins=twins)], A)
    for into, out in ((0, [0]), (0, [0, 1]), (0, [0, 1, 2]), (1, [1, 2])):
        replayed._check_branch(np.array([into]), np.array(out))
    for into, out in ((1, [0, 1]), (0, [0, 3]), (3, [0, 3]), (0, [1]), (2, [1, 2])):
        with pytest.raises(split.Unproved):
            replayed._check_branch(np.array([into]), np.array(out))
    replayed.price = np.array([0.2, 0.1, 0.2, 0.2])
    replayed._check_branch(np.array([0]), np.array([0, 2]))
    with pytest.raises(split.Unproved):
        replayed._check_branch(np.array([0]), np.array([0, 1]))


@pytest.mark.parametrize("priced", [False, True])
def test_split_of_a_node_dominates_every_support(priced):
    """x'Ax - price(S) <= x'Mx for every support of the node."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        n, s = 5, 2 + seed % 3
        A = np.cov(rng.standard_normal((9, n)).T)
        price = rng.random(n) * 0.3 * priced
        step = {"step": "split", "features": np.arange(n)}
        step |= {"u": rng.standard_normal(10) * 0.3, "r": rng.standard_normal(10)}
        replayed = proof._Replay([header(s=s, prices=price), step], A)
        alive = np.ones(n, dtype=bool)
        alive[int(rng.integers(n))] = seed % 2 == 0
        forced = np.zeros(n, dtype=bool)
        forced[np.flatnonzero(alive)[: seed % 2 + 1]] = seed > 1
        M = replayed._split(1, alive, forced)[0]
        index = np.flatnonzero(alive).tolist()
        for size in range(max(1, int(forced.sum())), s + 1):
            for S in combinations(range(len(index)), size):
                features = [index[i] for i in S]
                if forced[features].sum() != forced.sum():
                    continue
                block = A[np.ix_(features, features)] - price[features].sum() * np.eye(size)
                gap = np.linalg.eigvalsh(M[np.ix_(S, S)] - block)
                assert gap[0] >= -1e-12


@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_replay_refuses_units_that_do_not_fit_the_matrix(exponent):
    size = 2.0**exponent
    A = size * (np.eye(3) + 0.25)
    header = {"unit": size, "s": 2, "nonnegative": False, "bound": 9 * size, "step": "problem"}
    replayed = proof._Replay([header], A)
    assert np.array_equal(replayed.a, A / size)
    assert replayed.bound == 9.0
    for wrong in (2.0**45, 2.0**-45):
        with pytest.raises(split.Unproved, match="does not fit"):
            proof._Replay([{**header, "unit": size * wrong}], A)
    for wrong in (3.0, 0.0, -1.0, np.inf):
        with pytest.raises(split.Unproved):
            proof._Replay([{**header, "unit": size * wrong}], A)
    with pytest.raises(split.Unproved, match="does not fit"):
        proof._Replay([{**header, "unit": 1.0}], A * 2.0**-80)


@pytest.mark.usefixtures("coarse")
def test_small_test_keeps_its_margin(factored):
    rng = np.random.default_rng(0)
    factor, drop, room = rng.standard_normal((7, 3)), rng.random(7), 5.0
    gram = (factor / (room + drop)[:, None]).T @ factor
    trace = np.trace(gram)
    proof._small_test(factor, room, drop)
    due = (14 + 32) * E * trace + 4 * 5 * E * (3 + trace)
    assert np.allclose(np.eye(3) * (1 - due) - gram, factored[-1], atol=1e-9)


@pytest.mark.usefixtures("coarse")
def test_replay_lowers_its_level_by_what_twins_change():
    A = np.array([[4.0, 2.0, 0.4], [2.0, 1.0 + 1e-3, 0.2], [0.4, 0.2, 4.0]])
    header = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 6.0, "step": "problem"}
    header["twins"] = {"features": [1], "leaders": [0], "factors": [0.5]}
    replayed = proof._Replay([header], A)
    assert replayed.bound - replayed.t >= 2 * (1e-3 + 4 * E * 4.0) * LESS
    assert replayed.a[1, 1] == 1.0


@pytest.mark.usefixtures("coarse")
def test_check_fixing_keeps_its_margins(monkeypatch):
    asked = []
    monkeypatch.setattr(proof, "_small_test", lambda B, room, drop: asked.append(drop) or True)
    monkeypatch.setattr(proof, "_majorant", lambda M, t: (np.zeros((4, 2)), 0.0))
    rng = np.random.default_rng(7)
    A = np.cov(rng.standard_normal((9, 4)).T)
    header = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 5.0, "step": "problem"}
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 3.0), "r": np.zeros(6)}
    replayed = proof._Replay([header, step], A)
    alive, forced = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
    _, w, level, following = replayed._split(1, alive, forced)
    replayed._check_fixing(1, alive, forced, np.array([0]), np.array([2]))
    for drop, gap, size in (
        (asked[0], level - w[:, 0], level + np.abs(w[:, 0])),
        (asked[1], (w[:, 2] - following)[[0, 1, 3]], (following + np.abs(w[:, 2]))[[0, 1, 3]]),
    ):
        rows = np.arange(drop.size) > 0 if drop.size == 4 else np.arange(3) >= 0
        assert (drop[rows] <= (gap - 8 * E * size)[rows] + 1e-15).all()
    assert asked[0][0] == 0.0


ONE = Question((2,), False, True, 0.0)


def positive_header(**more):
    plain = {"unit": 1.0, "s": 2, "nonnegative": True, "bound": 1.0, "step": "problem"}
    return {**plain, **more}


def test_settle_shrinks_full_nonnegative_supports_only():
    A = np.array([[2.0, -0.5, 0.1], [-0.5, 2.0, 0.1], [0.1, 0.1, 1.0]])
    both = np.array([True, True, False])
    none = np.zeros(3, dtype=bool)
    step = {"end": "shrink"}
    good = proof._Replay([positive_header(bound=2.2)], A)
    good._settle(1, step, both, both)
    assert good.pending[1] == {"shrink": {0, 1}}
    for log, alive, forced in (
        (positive_header(bound=2.2), both, none),
        (positive_header(bound=2.2, nonnegative=False), both, both),
        (positive_header(bound=2.2, prices=np.full(3, 0.1)), both, both),
        (positive_header(bound=1.4), both, both),
    ):
        with pytest.raises(split.Unproved):
            proof._Replay([log], A)._settle(1, step, alive, forced)
    plus = np.abs(A)  # its vector is positive
    with pytest.raises(split.Unproved):
        proof._Replay([positive_header(bound=2.2)], plus)._settle(1, step, both, both)


def test_replay_refuses_problems_that_make_no_sense(monkeypatch):
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
            proof._Replay([positive_header(**wrong)], A)
    own = covariance_of_data(
        np.random.default_rng(7).standard_normal((9, 3)), True, False, None, 1
    )[0]
    own.error_unit = 1e-3
    monkeypatch.setattr(proof, "replay", lambda log, a: 1.0)
    found = proof.recheck({"log": [positive_header(nonnegative=False)]}, own, ONE)
    assert found == pytest.approx(1.0 + own.rounding(2))


def test_settle_accepts_a_node_equal_to_an_earlier_one_only():
    A = np.eye(3)
    alive, forced = np.ones(3, dtype=bool), np.array([True, False, False])
    replayed = proof._Replay([positive_header()], A)
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
    for wrong in (positive_header(prices=np.array([0.1, -0.1, 0.0])), positive_header(step="node")):
        with pytest.raises(split.Unproved):
            proof.replay([wrong], A)


def test_check_fixing_leaves_rows_without_a_choice_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(
        proof, "_small_test", lambda B, room, drop: asked.append((room, drop)) or True
    )
    monkeypatch.setattr(proof, "_majorant", lambda M, t: (np.zeros((4, 2)), 0.25))
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 0.5), "r": np.zeros(6)}
    replayed = proof._Replay([positive_header(bound=5.0), step], np.eye(4) + 0.5)
    alive, forced = np.ones(4, dtype=bool), np.array([True, False, False, False])
    replayed._check_fixing(1, alive, forced, np.array([1]), np.array([2]))
    for room, drop in asked:
        assert room == 4.75
        assert not drop[1:].any()


def test_no_positive_eigenvector_needs_an_angle_beyond_rounding(monkeypatch):
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


def test_no_positive_eigenvector_is_not_claimed_for_equal_eigenvalues(monkeypatch):
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


def test_settle_refuses_leaves_that_features_outside_may_join():
    A = np.eye(3) * 0.5
    alive, forced = np.array([True, True, False]), np.array([True, False, False])
    both = np.array([True, True, False])
    plain = proof._Replay([positive_header(nonnegative=False)], A)
    plain._settle(1, {"end": "leaf"}, alive, forced)
    padded = proof._Replay([positive_header(nonnegative=False, pads=np.full(3, 0.1))], A)
    padded._settle(1, {"end": "leaf"}, both, both)
    with pytest.raises(split.Unproved, match="join"):
        padded._settle(1, {"end": "leaf"}, alive, forced)


def test_settle_factors_the_matrix_of_closed_nodes():
    """The matrix of the node, not its charges: those are smaller than many a bound."""
    A = np.eye(4) + 0.5
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 0.1), "r": np.zeros(6)}
    alive, forced = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
    node = {"end": "closed", "split": 1}
    for bound, proved in ((3.0, True), (1.5, False), (0.5, False)):
        replayed = proof._Replay([positive_header(bound=bound, nonnegative=False), step], A)
        if proved:
            replayed._settle(2, node, alive, forced)
        else:
            with pytest.raises(split.Unproved, match="too large"):
                replayed._settle(2, node, alive, forced)


def test_majorant_leaves_room_for_its_own_rounding(monkeypatch):
    asked = []
    monkeypatch.setattr(proof, "below", lambda M, t: asked.append(t) or split.below(M, t))
    for A, _ in matrices(5, p=8):
        factor, low = proof._majorant(A, float(np.linalg.eigvalsh(A)[-1]) * 0.9)
        due = 4 * (factor.shape[1] + 2) * 2.0**-52 * float((factor**2).sum())
        assert 0.9 * due <= low - asked[-1] <= 1.1 * due + 1e-15
        rest = oracle.exact_matrix(A)
        B = oracle.exact_matrix(factor)
        for i in range(8):
            for j in range(8):
                rest[i][j] -= sum((B[i][r] * B[j][r] for r in range(len(B[0]))), Fraction(0))
        assert oracle.proves_below(rest, range(8), Fraction(low))


def test_small_test_is_never_passed_wrongly():
    """I - B' Diag(1 / (room + D)) B: by exact elimination, around the room that is just enough."""
    yes = 0
    for A, rng in matrices(12, p=5):
        factor, drop = np.linalg.cholesky(A)[:, :3], rng.random(5) * 0.1
        scaled = factor.T @ factor
        top = float(np.linalg.eigvalsh(scaled)[-1])
        for room in top * np.array([0.5, 0.9, 0.95, 1 - 1e-12, 1.0, 1 + 1e-12, 1.1]):
            if not proof._small_test(factor, float(room), drop):
                continue
            yes += 1
            B = oracle.exact_matrix(factor)
            inverse = [1 / (Fraction(room) + Fraction(d)) for d in drop]
            G = [
                [
                    sum((B[i][a] * B[i][b] * inverse[i] for i in range(5)), Fraction(0))
                    for b in (0, 1, 2)
                ]
                for a in (0, 1, 2)
            ]
            assert oracle.proves_below(G, range(3), Fraction(1))
    assert yes >= 12
