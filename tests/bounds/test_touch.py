"""The touch certificate: whatever level it accepts, no support outside the core explains more."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.bounds import touch
from sparcipal.bounds.pairsplit import Part, Split, split_matrix
from sparcipal.bounds.touch import Strata, groups_of
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from tests.support import cover_cases
from tests.support.touch_cases import one_touch_case

NO_PAIR = Split.rounded(np.arange(1), np.triu_indices(1, 1), np.zeros(0), np.zeros(0))


def largest_outside(A, s, core, nonnegative):
    """The largest value of a support of at most s features that leaves the core."""
    best = -np.inf
    for size in range(1, s + 1):
        for S in combinations(range(len(A)), size):
            if set(S) <= set(core):
                continue
            w, Q = np.linalg.eigh(A[np.ix_(S, S)])
            lead = Q[:, -1]
            if nonnegative and lead.min() < -1e-9 and lead.max() > 1e-9:
                continue  # a maximiser with zeros is met on a smaller support
            best = max(best, float(w[-1]))
    return best


def random_split(rng, A, core, nonnegative):
    """Any U and R are a certificate; near clip(A) they are a good one."""
    n = len(core)
    upper = np.triu_indices(n, 1)
    block = A[np.ix_(core, core)]
    rho = rng.choice([0.0, 0.3, 1.0, 10.0]) * np.abs(block).max()
    u = np.clip(block, -rho, rho) + rng.choice([0.0, 0.1]) * rng.standard_normal((n, n))
    r = rng.choice([0.0, 0.5]) * rng.standard_normal((n, n))
    return Split.rounded(np.arange(n), upper, u[upper], r[upper])


def random_table(rng, p):
    X = rng.standard_normal((rng.integers(3, 30), p)) * rng.choice([0.2, 1.0, 3.0], size=p)
    X[:, : p // 2] += rng.choice([0.0, 2.0]) * rng.standard_normal((len(X), 1))
    if rng.random() < 0.3:
        X[:, -1] = X[:, -2]
    if rng.random() < 0.2:
        X[:, 0] = 1.0
    return X


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nonnegative", [False, True])
def test_accepted_levels_hold_for_every_support_outside(monkeypatch, seed, nonnegative):
    if seed % 2:
        monkeypatch.setattr(touch, "LATER", 0)  # scales are proved at the end
    rng = np.random.default_rng(seed)
    accepted = 0
    for _ in range(6):
        p = int(rng.integers(4, 9))
        X = random_table(rng, p)
        cov = covariance_of_data(X)[0]
        if rng.random() < 0.5:
            cov = covariance_of(np.cov(X.T, bias=True))
        A = cov.dense()
        s = int(rng.integers(1, p))
        core = np.sort(rng.choice(p, size=int(rng.integers(1, p)), replace=False))
        strata = Strata(cov, s, nonnegative, core, random_split(rng, A, core, nonnegative))
        true = largest_outside(A, s, core, nonnegative)
        # levels just below the truth, and up to where certificates are found
        for factor in (0.9, 0.999, 1.0, 1.001, 1.1, 1.5, 3.0):
            found = strata.attempt(max(true, 1e-9) * factor).touch
            if found is None:
                continue
            accepted += 1
            assert found.level >= true * (1 - 1e-12)
            covered = [tau for g in found.groups for tau in range(g.first, g.last + 1)]
            assert covered == list(range(1, s))
    assert accepted > 0


def test_copies_outside_count_each_on_their_own():
    """Three copies of a feature of variance 1 explain 3 together."""
    A = np.zeros((4, 4))
    A[0, 0], A[1:, 1:] = 1.2, 1.0
    cov = covariance_of(A)
    strata = Strata(cov, 3, False, np.array([0]), NO_PAIR)
    assert strata.attempt(2.8 / cov.unit).touch is None
    assert strata.attempt((3.0 + 1e-9) / cov.unit).touch is not None


def test_copies_of_small_variance_count_each_on_their_own():
    """The same where variances alone are looked at."""
    rng = np.random.default_rng(0)
    column = rng.standard_normal(20)
    column = (column - column.mean()) / column.std()
    first = rng.standard_normal(20)
    first -= first.mean() + column * (first @ column) / 20
    first *= np.sqrt(1.2) / first.std()
    X = np.column_stack([first, column, column, column])
    cov = covariance_of_data(X)[0]
    strata = Strata(cov, 3, False, np.array([0]), NO_PAIR)
    assert strata.attempt(2.8 / cov.unit).touch is None
    assert strata.attempt((3.0 + 1e-9) / cov.unit).touch is not None


@pytest.mark.parametrize("s", [1, 2, 3, 4, 7, 20, 150, 151])
def test_groups_cover_every_number_once(s):
    covered = [tau for first, last in groups_of(s) for tau in range(first, last + 1)]
    assert covered == list(range(1, s))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("anchors", [0, 1, 3])
def test_matrices_of_all_strata_are_those_of_the_pair_split(anchors, nonnegative):
    rng = np.random.default_rng(anchors)
    A = np.cov(rng.standard_normal((30, 12)).T)
    cov, core, s = covariance_of(A), np.arange(1, 10), 6
    split = random_split(rng, cov.dense(), core, nonnegative)
    forced = core[:anchors]
    strata = Strata(cov, s, nonnegative, core, split, forced)
    for tau in range(1, s - max(anchors, 1) + 1):
        part = Part(
            np.arange(9), cov.submatrix(core), np.isin(core, forced), np.zeros(9), s - tau,
            nonnegative, np.zeros(9),
        )  # fmt: skip
        expected = split_matrix(part, split).matrix
        np.testing.assert_allclose(strata.matrix(tau), expected, rtol=1e-13, atol=1e-14)
        assert strata.top(tau) == pytest.approx(np.linalg.eigvalsh(expected)[-1])


def test_no_accepted_level_is_false_in_exact_arithmetic():
    for seed in range(150):
        assert one_touch_case(seed) == [], f"seed {seed}"


def test_no_level_that_the_checker_accepts_is_false():
    pytest.importorskip("flint")
    for seed in range(100):
        assert cover_cases.one_touch_replay(seed) == [], f"seed {seed}"


def test_the_judge_of_replays_notices_a_checker_that_accepts_everything(monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.setattr(cover_cases, "check_touch", lambda *_: None)
    assert any(cover_cases.one_touch_replay(seed) for seed in range(60))


def test_a_level_that_fails_is_looked_at_for_few_numbers_and_groups_stay_whole():
    """What was not looked at is no part of a certificate, and no number is lost for the next."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 60)) + 3 * rng.standard_normal((30, 1))
    cov, core, s = covariance_of_data(X)[0], np.arange(25), 20
    split = random_split(rng, cov.submatrix(np.arange(60)), core, False)
    strata = Strata(cov, s, False, core, split)
    low = strata.attempt(strata.top() * 1.02)
    assert low.touch is None
    assert low.joining.size
    assert np.isnan(low.m).any()
    assert not np.isnan(low.m).all(axis=1).any()
    high = strata.attempt(strata.top() * 100)
    covered = [tau for g in high.touch.groups for tau in range(g.first, g.last + 1)]
    assert covered == list(range(1, s))
    assert not np.isnan(high.m).any()


@pytest.mark.parametrize("seed", range(4))
def test_the_level_of_uniform_pads_is_certified_and_hardly_a_lower_one(seed):
    rng = np.random.default_rng(seed)
    cov = covariance_of_data(rng.standard_normal((30, 40)))[0]
    core, s = np.arange(15), 6
    strata = Strata(cov, s, False, core, random_split(rng, cov.dense(), core, False))
    assert strata.uniform_level() == -np.inf  # nothing has been looked at
    strata.attempt(strata.top() * (1 + 1e-3), shaping=0.0)
    level = strata.uniform_level()
    assert strata.attempt(level, shaping=0.0).touch is not None
    assert strata.attempt(level * (1 - 1e-4), shaping=0.0).touch is None


@pytest.mark.parametrize("wrong", [1.0, 1 + 1e-6])
def test_scales_that_are_proved_at_the_end_are_those_proved_at_once(monkeypatch, wrong):
    """An eigenvalue that is too small gives scales that do not fit, which must be noticed."""
    rng = np.random.default_rng(5)
    cov = covariance_of_data(random_table(rng, 12))[0]
    core = np.arange(6)
    levels = []
    for later in (400, 0):
        monkeypatch.setattr(touch, "LATER", later)
        strata = Strata(
            cov, 4, False, core, random_split(np.random.default_rng(6), cov.dense(), core, False)
        )
        strata._tops = {tau: strata.top(tau) / wrong for tau in range(1, 4)}
        tried = strata.top() * np.linspace(1.0, 4.0, 25)
        found = [strata.attempt(t).touch for t in tried]
        levels.append([None if one is None else one.level for one in found])
        for one in filter(None, found):
            assert all(strata._holds(group, one.level) for group in one.groups)
    assert levels[0] == levels[1]
    assert any(level is not None for level in levels[0])


@pytest.mark.parametrize("factor", [1.02, 1.1])
def test_covariances_outside_are_formed_only_where_variances_leave_a_level_open(factor):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 60)) * np.r_[np.full(10, 3.0), np.linspace(2.8, 0.3, 50)]
    cov, core = covariance_of_data(X)[0], np.arange(10)
    split = random_split(rng, cov.dense(), core, False)
    strata, whole = (kind(cov, 4, False, core, split) for kind in (Strata, AllFormed))
    found, same = (one.attempt(factor * strata.top()) for one in (strata, whole))
    assert 0 < np.count_nonzero(strata._formed) < strata._near.size
    assert whole._formed.all()
    assert (found.touch is None) == (same.touch is None) == (factor < 1.1)
    assert found.joining.tolist() == same.joining.tolist()


def test_covariances_outside_are_the_same_in_pieces(monkeypatch):
    rng = np.random.default_rng(1)
    cov, core = covariance_of_data(rng.standard_normal((40, 60)))[0], np.arange(10)
    split = random_split(rng, cov.dense(), core, False)
    whole = AllFormed(cov, 4, False, core, split)
    monkeypatch.setattr("sparcipal.bounds.touch.ENTRIES", 120)
    pieces = AllFormed(cov, 4, False, core, split)
    for strata in (whole, pieces):
        strata._look_at(np.arange(10, 60))
    np.testing.assert_allclose(pieces.others, whole.others, rtol=1e-12)


class AllFormed(Strata):
    """Features are looked at with all of their covariances."""

    def _look_at(self, near):
        super()._look_at(near)
        self._form(np.arange(near.size))
