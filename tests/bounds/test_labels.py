"""Labelled bounds: no certificate, price or tree of cases gives less than the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.labels.groups import Group, evaluated
from sparcipal.bounds.labels.proof import Label, Proof
from sparcipal.bounds.labels.rows import Rows
from sparcipal.bounds.pairsplit import Split
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.problem.covariance import covariance_of
from tests.support.brute import best_value
from tests.support.label_cases import Values, certificate, grown, some_prices
from tests.support.proof_cases import matrix
from tests.support.replay import recheck


def small(rng: np.random.Generator) -> tuple[np.ndarray, int, int]:
    while True:
        A = matrix(rng)
        if A.any():
            break
    p = A.shape[0]
    k = int(rng.integers(1, min(p, 3) + 1))
    return A, k, int(rng.integers(1, min(p, 3) + 1))


def field_of(rng: np.random.Generator, inside: np.ndarray) -> np.ndarray:
    """Some features that vary; others have no price and are in no core."""
    some = rng.permutation(np.flatnonzero(inside.diagonal() > 0))
    return np.sort(some[: rng.integers(1, some.size + 1)])


@pytest.mark.parametrize("seed", range(3))
def test_any_group_certificate_is_a_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(120):
        A, k, s = small(rng)
        cov, nonnegative = covariance_of(A), bool(rng.integers(2))
        inside = cov.dense()
        p = inside.shape[0]
        field = field_of(rng, inside)
        rows = Rows(cov, field, s, nonnegative)
        places = rng.permutation(field.size)
        forced = frozenset(int(j) for j in places[: rng.integers(0, min(s, field.size) + 1)])
        banned = frozenset(int(j) for j in places[len(forced) :][: rng.integers(0, 3)])
        if len(banned) == field.size:
            continue
        label = Label(1 if forced else k, forced, banned)
        price = some_prices(rng, rows)
        group = certificate(rng, rows, label, price, float(inside.diagonal().max()))
        full = np.zeros(p)
        full[field] = price
        best = Values(inside, s, nonnegative).best(
            label.count, frozenset(field[list(forced)]), frozenset(field[list(banned)]), full
        )
        bound = evaluated(group, rows, price).proved(label.count)
        assert bound >= best - 1e-13 * (abs(best) + full.sum())


@pytest.mark.parametrize("seed", range(3))
def test_any_tree_of_cases_is_a_bound(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(25):
        A, k, s = small(rng)
        cov, nonnegative = covariance_of(A), bool(rng.integers(2))
        inside = cov.dense()
        rows = Rows(cov, field_of(rng, inside), s, nonnegative)
        proof, values = Proof(rows, k), Values(inside, s, nonnegative)
        for state, total in grown(rng, proof, float(inside.diagonal().max())):
            there = tuple(
                Label(
                    label.count,
                    frozenset(rows.field[list(label.forced)]),
                    frozenset(rows.field[list(label.banned)]),
                )
                for label in state
            )
            best = values.best_of(there)
            assert total >= best - 1e-13 * abs(best) or best == -np.inf
        best = best_value(inside, (s,) * k, nonnegative)
        assert proof.bound >= best * (1 - 1e-13)
        question = Question((s,) * k, nonnegative, True, best)
        own = recheck("labels", proof.data(), checked_covariance(A, cov.unit), question)
        assert best * (1 - 1e-13) <= own <= proof.bound + 1e-12 * abs(proof.bound)
