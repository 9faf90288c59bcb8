"""One set of features for all components: cuts, branch and bound, and what the checkers say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.common.cut import proved_cut
from sparcipal.bounds.common.relaxation import Sets, relaxed
from tests.support.honest import honest
from tests.support.second_checker import Refused, prove
from tests.support.second_checker.question import Ask
from tests.support.set_cases import best_of_sets, one_set_case, random_log


def table(seed: int, p: int, n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ (np.eye(p) + 0.35 * rng.standard_normal((p, p)))


@pytest.mark.parametrize("seed", range(40))
def test_logs_are_accepted_and_changed_ones_below_the_best_set_are_not(seed):
    assert one_set_case(seed) == []


def test_relaxation_ends_between_its_own_bounds():
    A = np.cov(table(0, 20).T, bias=True)
    sets = Sets(A, 2, 6, np.zeros(20, dtype=bool), np.zeros(0))
    found = relaxed(sets, 0.0)
    cut = proved_cut(A, np.arange(20), found.L, 2, 20)
    assert found.iterations < 40
    assert found.share.sum() == pytest.approx(6)
    assert cut.base + np.sort(cut.coef)[-6:].sum() == pytest.approx(found.bound, rel=1e-5)
    assert best_of_sets(A, 2, 6) < found.bound < np.sort(np.diagonal(A))[-6:].sum()


def test_branch_and_bound_finds_and_proves_the_best_of_too_many_sets():
    X = table(0, 18)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=7, supports="common")
    assert result.status.value == "optimal"
    assert result.certificate.nodes > 2
    assert result.value == pytest.approx(best_of_sets(np.cov(X.T, bias=True), 2, 7), rel=1e-9)
    assert verify(result, X, arithmetic="exact").verdict == "proved"


@pytest.mark.parametrize("seed", range(20))
def test_the_second_checker_accepts_logs_of_common_supports(seed):
    A, k, s, data = random_log(seed)
    if k == 1:
        return
    exactly = [[Fraction(x) for x in row] for row in A.tolist()]
    ask = Ask(exactly, (s,) * k, supports="common", given=True)
    log = _lists(data)
    prove("common", log, ask, Fraction(log["log"][0]["bound"]) * (1 + Fraction(1, 10**9)))
    best = best_of_sets(A, k, s)
    if best > 1e-9:
        log["log"][0]["bound"] = best * (1 - 1e-6)
        with pytest.raises(Refused):
            prove("common", log, ask, Fraction(best * (1 - 1e-6)))


def _lists(data):
    """Arrays as the second checker decodes them."""
    if isinstance(data, dict):
        return {name: _lists(entry) for name, entry in data.items()}
    if isinstance(data, list):
        return [_lists(entry) for entry in data]
    return data.tolist() if isinstance(data, np.ndarray) else data


def test_features_outside_the_core_count_their_variance():
    """Of 500 features 60 vary much; the proof speaks of 100, and still closes."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 500)) * np.append(np.full(60, 3.0), np.full(440, 0.3))
    X[:, :6] += 4.0 * rng.standard_normal((80, 2))[:, [0, 0, 0, 1, 1, 1]]
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=6, supports="common")
    own = next(b for b in result.certificate.bounds if b.name == "common")
    assert own.data["core"].size == 100
    assert result.certificate.proved_by == "common"
    assert result.gap < 0.05
    assert verify(result, X).verdict == "proved"
    # with the variance of one more feature in the core's place, the bound is none
    fewer = {**own.data, "core": own.data["core"][1:]}
    assert not verify(_claiming(result, own, fewer), X)


def _claiming(result, own, data):
    bound = replace(own, data=data)
    return replace(result, certificate=replace(result.certificate, bounds=(bound,)))


def test_a_tolerance_of_zero_leaves_room_for_rounding():
    """A log that ends in leaves claims a little more than the best of their sets is worth."""
    X = honest(7130).X[:, :60].astype(float)
    asked = {"n_components": 3, "n_nonzero_coefs": 3, "supports": "common", "certify": "full"}
    result = sparse_pca(X, **asked, tol=0.0, max_nodes=1, center=False)
    assert "common" in [bound.name for bound in result.certificate.bounds]
    assert verify(result, X)
