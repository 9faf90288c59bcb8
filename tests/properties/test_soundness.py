"""A short soundness campaign: value - rounding <= optimum <= bound, judged in exact fractions.

`make soundness N=10000` is the long one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from tests.support import cases, families, judge, oracle

# Cases that once were wrong: honest proofs that the checker refused, divisions by zero.
ONCE_WRONG = (1003, 1311, 5514, 15081, 15164, 76782, 77135, 78407, 79011, 79266, 25801295)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_certificates_hold_for_cases_that_were_wrong_once(seed):
    verdict = judge.judge(cases.case(seed))
    assert not verdict.wrong
    assert verdict.results


@pytest.mark.parametrize("family", sorted(families.FAMILIES))
def test_certificates_hold_in_exact_fractions(family):
    position = list(families.FAMILIES).index(family)
    step = len(families.FAMILIES)
    certificates = 0
    for seed in range(position + 700 * step, position + 703 * step, step):
        question = cases.case(seed)
        verdict = judge.judge(question)
        assert not verdict.wrong, f"{question}: {'; '.join(verdict.wrong)}"
        certificates += verdict.results
    assert certificates >= 2


def test_every_option_is_asked_for():
    asked = [cases.case(seed) for seed in range(400)]
    for road in cases.ROADS:
        assert any(case.road == road for case in asked)
    for key in ("max_nodes", "time_limit", "sample_weight", "rank"):
        assert any(key in case.options for case in asked)
    for key, values in {
        "certify": ("fast", "full", False),
        "supports": ("free", "disjoint"),
        "nonnegative": (True, False),
        "center": (True, False),
        "scale": (True, False),
        "n_jobs": (None, 1, 2),
    }.items():
        for value in values:
            assert any(key in c.options and c.options[key] == value for c in asked)
    assert any(case.stop_after for case in asked)
    assert any(isinstance(case.options["n_nonzero_coefs"], dict) for case in asked)
    assert any(case.given for case in asked)


def test_full_supports_without_a_positive_solution_do_not_fool_the_proof():
    from tests.support.forgeries import shrinking

    result = sparse_pca(shrinking(), n_nonzero_coefs=6, certify="full", nonnegative=True)
    assert result.status.value == "optimal"
    assert verify(result, shrinking())


# --- the judge itself ---


def test_the_judge_sees_a_bound_that_is_too_low(monkeypatch):
    question = cases.case(0)
    for seed in range(1, 200):
        question = cases.case(seed)
        if not question.given and question.stop_after is None:
            verdict = judge.judge(question)
            if verdict.results and verdict.above < 1e-9:
                break
    real = judge._run

    def lowered(case):
        from dataclasses import replace

        results = real(case)
        return [
            replace(r, certificate=replace(r.certificate, bound=r.bound * (1 - 1e-8)))
            for r in results
        ]

    monkeypatch.setattr(judge, "_run", lowered)
    assert any("more" in reason for reason in judge.judge(question).wrong)


def test_oracle_tells_bounds_from_smaller_ones_exactly():
    A = oracle.exact_matrix(np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert oracle.proves_below(A, (0, 1), Fraction(3))
    assert not oracle.proves_below(A, (0, 1), Fraction(3) - Fraction(1, 10**40))
    assert oracle.proves_below(A, (0,), Fraction(2))


def test_the_oracle_agrees_with_plain_enumeration():
    from tests.support.brute import best_value

    rng = np.random.default_rng(3)
    for _ in range(10):
        X = rng.standard_normal((9, 6))
        A = X.T @ X / 9
        for nonnegative in (False, True):
            judged = oracle.Oracle(oracle.exact_matrix(A), nonnegative)
            for sizes in ([2], [3, 2], [1, 1, 2]):
                plain = best_value(A, tuple(sizes), nonnegative)
                assert float(judged.optimum(sizes, None)) == pytest.approx(plain, rel=1e-12)


def test_oracle_covariance_agrees_with_numpy():
    X = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]])
    plain = oracle.exact_covariance(X, center=True, scale=False, weights=None)
    assert np.allclose(np.array(plain, dtype=float), np.cov(X.T, bias=True))
    scaled = oracle.exact_covariance(X * 1e-300, center=True, scale=True, weights=None)
    assert np.allclose(np.array(scaled, dtype=float), np.corrcoef(X.T))
