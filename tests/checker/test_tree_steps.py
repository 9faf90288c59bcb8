"""What a log claims of matrices: leaves, closed nodes, fixing tests, shrinking."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparcipal.checker import tree
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.gate import parse
from sparcipal.checker.records import Pass, Tree
from sparcipal.checker.signs import no_positive_eigenvector
from sparcipal.checker.tree import (
    Claim,
    State,
    bits,
    majorant,
    members,
    small_test,
)
from tests.support import oracle
from tests.support.margins import matrices
from tests.support.replay import FLOAT, parsed, prover, replay

E = 2.0**-20
NONE = np.array([], dtype=np.intp)


class Coarse(Float):
    """A unit of rounding of one's own, and what was to be factored."""

    def __init__(self, eps=E, answer=None):
        self.eps, self.answer, self.levels, self.factored = eps, answer, [], []

    def below(self, M, t):
        self.levels.append(t)
        return super().below(M, t) if self.answer is None else self.answer

    def psd(self, M, blur=0.0):
        self.factored.append((M, blur))
        return super().psd(M, blur) if self.answer is None else self.answer


def header(**more):
    plain = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 1.0, "step": "problem"}
    return {**plain, "twins": {}, **more}


def node(parent=-1, side="root", moved=NONE, end="leaf", passes=(), **more):
    moved = np.atleast_1d(np.asarray(moved, dtype=np.intp))
    plain = {"step": "node", "parent": parent, "side": side, "moved": moved, "end": end}
    return {**plain, "passes": list(passes), **more}


def twins(features, leaders, factors):
    return {
        "features": np.array(features),
        "leaders": np.array(leaders),
        "factors": np.array(factors, dtype=float),
    }


@pytest.mark.parametrize("features", [[], [0], [2, 5, 63, 64, 99]])
def test_sets_of_features_are_bits_and_back(features):
    mask = bits(np.array(features, dtype=np.intp))
    assert mask.bit_count() == len(features)
    assert members(mask, 100).tolist() == features


@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_logs_are_in_units_of_their_matrix(exponent):
    size = 2.0**exponent
    A = size * (np.eye(3) + 0.25)
    own = prover([header(unit=size, bound=9 * size)], A)
    assert np.array_equal(own.a, A / size)
    assert own.t == 9.0
    for wrong in (2.0**45, 2.0**-45):
        with pytest.raises(Refused, match="does not fit"):
            prover([header(unit=size * wrong)], A)
    for wrong in (3.0, 0.0, -1.0, np.inf):
        with pytest.raises(Refused, match="unit"):
            prover([header(unit=size * wrong)], A)
    with pytest.raises(Refused, match="does not fit"):
        prover([header()], A * 2.0**-80)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pads": np.array([0.1, -0.1, 0.1])},
        {"pads": np.array([0.1, 0.1])},
        {"pads": [0.1, 0.1, 0.1]},
        {"prices": np.array([0.1, np.nan, 0.0])},
        {"twins": twins([1], [0], [1.5])},
        {"twins": twins([1], [0], [-0.5]), "nonnegative": True},
        {"twins": twins([1, 0], [0, 2], [0.5, 0.5])},
        {"twins": twins([0, 1], [2, 0], [0.5, 0.5])},
        {"twins": twins([1], [1], [0.5])},
        {"twins": twins([1], [3], [0.5])},
        {"twins": twins([1], [-1], [0.5])},
        {"twins": twins([1], [0], [0.5]), "pads": np.full(3, 0.1)},
        {"s": 0},
        {"s": 4},
        {"s": 2.0},
        {"s": True},
        {"bound": np.nan},
        {"bound": 1},
        {"nonnegative": 0},
        {"step": "node"},
    ],
    ids=str,
)
def test_headers_of_trees_that_make_no_problem_are_refused(wrong):
    with pytest.raises(Refused):
        prover([header(**wrong)], np.eye(3) + 0.25)


def test_the_rounding_of_the_covariance_is_added():
    X = np.random.default_rng(7).standard_normal((9, 3))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 1e-3
    bound = 2 * float(own.diagonal.sum())
    record = parse(Tree, {"log": [header(bound=bound), node()]}, {"p": 3, "n": 3})
    found = tree.proved_by(record, Case(own, Question((2,), False, True, 0.0), FLOAT, Budget()))
    assert found == pytest.approx(bound + own.rounding(2))


def test_features_leave_with_their_twins_only():
    """Out with a feature go multiples of it that are no longer and no cheaper."""
    A = np.outer([1.0, 0.5, 0.25, 1.0], [1.0, 0.5, 0.25, 1.0])
    A[3] = A[:, 3] = [0.0, 0.0, 0.0, 1.0]
    own = prover([header(twins=twins([1, 2], [0, 0], [0.5, 0.25]))], A)
    for into, out in ((0, [0]), (0, [0, 1]), (0, [0, 1, 2]), (1, [1, 2])):
        own.check_branch(np.array([into]), np.array(out))
    for into, out in ((1, [0, 1]), (0, [0, 3]), (3, [0, 3]), (0, [1]), (2, [1, 2])):
        with pytest.raises(Refused):
            own.check_branch(np.array([into]), np.array(out))
    price = np.array([0.2, 0.1, 0.2, 0.2])
    own = prover([header(twins=twins([1, 2], [0, 0], [0.5, 0.25]), prices=price)], A)
    own.check_branch(np.array([0]), np.array([0, 2]))
    with pytest.raises(Refused):
        own.check_branch(np.array([0]), np.array([0, 1]))


def test_twins_that_are_not_quite_multiples_cost_their_difference():
    A = np.array([[4.0, 2.0, 0.4], [2.0, 1.0 + 1e-3, 0.2], [0.4, 0.2, 4.0]])
    log = parsed([header(bound=6.0, twins=twins([1], [0], [0.5]))], 3)
    own = tree.Prover(log[0], A, Coarse())
    assert 6.0 - own.t >= 2 * (1e-3 + 4 * E * 4.0) * (1 - 1e-9)
    assert own.a[1, 1] == 1.0


def test_closed_nodes_are_factored():
    """The matrix of the node, not its charges: those are smaller than many a bound."""
    A = np.eye(4) + 0.5
    split = {"step": "split", "features": np.arange(4), "u": np.full(6, 0.1), "r": np.zeros(6)}
    for bound, proved in ((3.0, True), (1.5, False), (0.5, False)):
        log = [header(bound=bound), split, node(end="closed", split=1)]
        if proved:
            assert replay(log, A) == bound
            continue
        with pytest.raises(Refused, match="too large"):
            replay(log, A)


def test_shrinking_is_for_full_nonnegative_supports():
    A = np.array([[2.0, -0.5, 0.1], [-0.5, 2.0, 0.1], [0.1, 0.1, 1.0]])
    both = header(s=2, bound=2.2, nonnegative=True)

    def log(first=both, leave=True):
        """Features 0 and 1 are forced one after the other; what else there is, is looked at."""
        steps = [first, node(end="branch"), node(1, "out", 0), node(1, "in", 0, "branch")]
        steps += [node(3, "out", 1), node(3, "in", 1, "branch")]
        steps += [node(5, "in", 2, "empty"), node(5, "out", 2, "shrink")]
        return steps + [node(7, "shrink", 0), node(7, "shrink", 1)] * leave

    assert replay(log(), A) == 2.2
    with pytest.raises(Refused, match="missing"):
        replay(log()[:-1], A)
    with pytest.raises(Refused, match="belong"):
        replay([*log()[:-1], node(7, "shrink", 0)], A)
    for wrong in ({"nonnegative": False}, {"prices": np.full(3, 1e-3)}, {"pads": np.full(3, 1e-3)}):
        with pytest.raises(Refused):
            replay(log({**both, **wrong}), A)
    early = [both, node(end="shrink"), *(node(1, "shrink", j) for j in range(3))]
    with pytest.raises(Refused, match="full"):
        replay(early, A)
    with pytest.raises(Refused):
        replay(log(), np.abs(A) + np.diag([0.0, 0.0, 0.0]))  # its vector is positive


def test_nodes_settled_by_another_refer_to_an_earlier_one_with_the_same_supports():
    A = np.eye(3)
    good = [header(bound=1.1), node(end="branch"), node(1, "in", 0), node(1, "out", 0)]
    assert replay(good, A) == 1.1
    for place in (1, 2, 3, 4, 0, 10**9):
        with pytest.raises(Refused, match="not the same"):
            replay([*good[:3], node(1, "out", 0, "same", node=place or 10**6)], A)
    with pytest.raises(Refused, match="not the same"):
        replay([header(bound=1.1), node(end="same", node=1)], A)
    with pytest.raises(Refused, match="not the same"):
        replay([header(bound=1.1), node(end="same")], A)
    with pytest.raises(Refused, match="open"):
        replay([header(bound=1.1), node(end="empty")], A)


def test_leaves_that_features_outside_may_join():
    A = np.eye(3) * 0.5
    split = {"step": "split", "clip": 0.0}
    assert replay([header(), node()], A) == 1.0
    padded = header(pads=np.full(3, 0.1))
    with pytest.raises(Refused, match="join"):
        replay([padded, node()], A)
    assert replay([padded, split, node(end="closed", split=1)], A) == 1.0


def test_leaves_of_too_many_supports_are_refused_before_they_are_looked_at():
    A = np.eye(60)
    with pytest.raises(Refused, match="at most 200000"):
        replay([header(s=10, bound=2.0), node()], A)


def test_the_supports_of_a_leaf_are_charged_before_any_is_looked_at():
    """A node of a few bytes may stand for 184,756 supports, each a factorisation."""
    log = parsed([header(s=10, bound=2.0), node()], 20)
    with pytest.raises(Refused, match="budget"):
        tree.replay(log, np.eye(20), Coarse(answer=True), Budget(work=1e9))
    small = parsed([header(s=2, bound=2.0), node()], 20)
    assert tree.replay(small, np.eye(20), FLOAT, Budget(work=1e9)) == 2.0


# --- fixing tests ---


def fixing(own, claim):
    with pytest.MonkeyPatch.context() as patch:
        asked = []
        look = lambda B, room, drop, ar: asked.append((room, drop)) or True  # noqa: E731
        patch.setattr(tree, "small_test", look)
        patch.setattr(tree, "majorant", lambda M, t, ar: (np.zeros((4, 2)), 0.25))
        own.check(claim, Budget())
    return asked


def pair_split(size):
    steps = [header(bound=5.0), {"step": "split", "features": np.arange(4)}]
    steps[1] |= {"u": np.full(6, size), "r": np.zeros(6)}
    return parsed(steps, 4)


def test_rows_without_a_choice_have_nothing_to_lose():
    problem, split = pair_split(0.5)
    own = tree.Prover(problem, np.eye(4) + 0.5, FLOAT)
    fixed = Pass(split=1, out=np.array([1]), into=np.array([2]))
    asked = fixing(own, Claim("pass", State(0b1111, 0b0001), split, fixed))
    assert len(asked) == 2
    for room, drop in asked:
        assert room == 4.75
        assert not drop[1:].any()


def test_fixed_features_leave_room_for_rounding():
    A = np.cov(np.random.default_rng(7).standard_normal((9, 4)).T)
    problem, split = pair_split(3.0)
    own = tree.Prover(problem, A, Coarse())
    fixed = Pass(split=1, out=np.array([0]), into=np.array([2]))
    claim = Claim("pass", State(0b1111, 0), split, fixed)
    on = own.charged(claim)[1]
    (_, out), (_, into) = fixing(own, claim)
    w = on.gain[:, 0]
    assert (out[1:] <= (on.level - w - 8 * E * (on.level + np.abs(w)))[1:] + 1e-15).all()
    assert out[0] == 0.0
    w, rest = on.gain[:, 2], [0, 1, 3]
    due = w - on.next_level - 8 * E * (on.next_level + np.abs(w))
    assert (into <= due[rest] + 1e-15).all()


def test_small_tests_leave_room_for_rounding():
    rng = np.random.default_rng(0)
    factor, drop, room = rng.standard_normal((7, 3)), rng.random(7), 5.0
    gram = (factor / (room + drop)[:, None]).T @ factor
    ar = Coarse(answer=True)
    small_test(factor, room, drop, ar)
    matrix, blur = ar.factored[0]
    trace = np.trace(gram)
    assert np.allclose(np.eye(3) - gram, matrix, atol=1e-12)
    assert blur >= ((14 + 32) * E * trace + 4 * 5 * E * (3 + trace)) * (1 - 1e-9)


def test_small_tests_never_say_yes_wrongly():
    """I - B' Diag(1 / (room + D)) B: by exact elimination, around the room that is just enough."""
    yes = 0
    for A, rng in matrices(12, p=5):
        factor, drop = np.linalg.cholesky(A)[:, :3], rng.random(5) * 0.1
        top = float(np.linalg.eigvalsh(factor.T @ factor)[-1])
        for room in top * np.array([0.5, 0.9, 0.95, 1 - 1e-12, 1.0, 1 + 1e-12, 1.1]):
            if not small_test(factor, float(room), drop, FLOAT):
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
    assert not small_test(np.ones((2, 1)), 0.0, np.zeros(2), FLOAT)
    assert not small_test(np.ones((2, 1)), -1.0, np.zeros(2), FLOAT)


def test_majorants_leave_room_for_their_own_rounding():
    for A, _ in matrices(5, p=8):
        ar = Coarse(2.0**-52)
        factor, low = majorant(A, float(np.linalg.eigvalsh(A)[-1]) * 0.9, ar)
        due = 4 * (factor.shape[1] + 2) * 2.0**-52 * float((factor**2).sum())
        assert 0.9 * due <= low - ar.levels[-1] <= 1.1 * due + 1e-15
        rest, B = oracle.exact_matrix(A), oracle.exact_matrix(factor)
        for i in range(8):
            for j in range(8):
                rest[i][j] -= sum((B[i][r] * B[j][r] for r in range(len(B[0]))), Fraction(0))
        assert oracle.proves_below(rest, range(8), Fraction(low))


# --- eigenvectors of both signs ---


def test_vectors_of_both_signs_need_an_angle(monkeypatch):
    """A negative entry counts only where rounding could not have made it."""
    fine = 2.0**-46  # the majorant leaves 1e-10 for the rounding of the rest
    ar = Coarse(fine)
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
                assert no_positive_eigenvector(block, 1.0, ar) is told
    assert no_positive_eigenvector(np.eye(2), 1.1, FLOAT)
    assert not no_positive_eigenvector(np.eye(2), 0.9, FLOAT)


def test_vectors_of_equal_eigenvalues_say_nothing():
    Q = np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]) / np.sqrt([2.0, 6.0, 3.0])
    for gap, told in ((0.0, False), (1e-14, False), (0.5, True)):
        block = (Q * np.array([2.0 + gap, 2.0, 0.5])) @ Q.T
        assert no_positive_eigenvector((block + block.T) / 2, 1.0, FLOAT) is told
    # what is left must lie below t, with room for its rounding
    block = (Q * np.array([2.0, 0.25, 0.5])) @ Q.T
    assert no_positive_eigenvector((block + block.T) / 2, 0.6, FLOAT)
    assert not no_positive_eigenvector((block + block.T) / 2, 0.5 + 1e-11, FLOAT)
    ar = Coarse(answer=True)
    no_positive_eigenvector(np.diag([2.0, 0.5, 0.25]), 1.0, ar)
    assert ar.levels[0] <= 0.5 + 1e-9 - 8 * 3 * E * 2.0 * (1 - 1e-9)


def test_majorants_lose_nothing_to_the_far_lower_end_of_a_matrix():
    """Its proof leaves a share of the largest eigenvalue, not of the largest magnitude: honest
    fixings of hundreds of features were refused for that."""
    n = tree.RANK + 20
    w = np.concatenate([[-300.0], np.linspace(0.5, 2.0, n - 1)])
    _, low = majorant(np.diag(w), 1.9, FLOAT)
    assert low - w[n - tree.RANK - 1] < 1e-9
