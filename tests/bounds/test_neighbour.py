"""The optimum per nonzero does not increase, and a path makes use of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparcipal import Result, path, verify
from sparcipal.bounds.neighbour import neighbour_bound
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Problem
from sparcipal.problem.result import Bound


def optima(F: np.ndarray, nonnegative: bool) -> list[float]:
    """The optimum for each number of nonzeros, by enumeration.

    The best x >= 0 has no zero on some support, where it is the leading eigenvector.
    """
    p, best, out = F.shape[1], 0.0, []
    for s in range(1, p + 1):
        for support in combinations(range(p), s):
            values, vectors = np.linalg.eigh(F[:, support].T @ F[:, support])
            leading = vectors[:, -1] * np.sign(vectors[:, -1].sum() or 1.0)
            if not nonnegative or (leading >= -1e-9).all():
                best = max(best, float(values[-1]))
        out.append(best)
    return out


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_per_nonzero_does_not_increase(seed, nonnegative):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((1 + seed % 4, 7)) * 10.0 ** rng.integers(-3, 3)
    F[:, 2], F[:, 3], F[:, 6] = F[:, 1], -F[:, 1], 0.0  # twins of both signs, a constant
    if seed == 7:
        F = np.eye(7) + 1.0
    per_nonzero = np.array(optima(F, nonnegative)) / np.arange(1, 8)
    assert (np.diff(per_nonzero) <= 1e-12 * per_nonzero[0]).all()


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    rng = np.random.default_rng(2)
    X = np.repeat(rng.standard_normal((25, 3)), 140, axis=1) * rng.uniform(0.7, 1.0, 420)
    return X + 0.1 * rng.standard_normal(X.shape)


@pytest.fixture(scope="module")
def scaled(table) -> Result:
    """A result of a path that has no tree of its own."""
    found = path.sparse_path(table, n_nonzero_coefs=[31, 32])
    assert (found.gaps <= path.SCALED).all()
    assert all(verify(result, table) for result in found)
    names = [{bound.name for bound in result.certificate.bounds} for result in found]
    assert ["tree" in own for own in names] == [True, False]
    assert ["neighbour" in own for own in names] == [False, True]
    return found[1]


def its_bound(result: Result) -> Bound:
    return next(bound for bound in result.certificate.bounds if bound.name == "neighbour")


def test_a_path_scales_the_last_proof(scaled, table):
    again = Result.from_json(scaled.to_json())
    assert verify(again, table, arithmetic="exact")
    assert its_bound(scaled).data["part"]["s"] == 31


def test_a_neighbour_of_a_neighbour_is_one_of_the_proof():
    X = np.random.default_rng(0).standard_normal((20, 6))
    cov, _, _ = covariance_of_data(X)
    known = Bound("trace", 2.0, {}, 1e-12)
    three = neighbour_bound(Problem(cov, (3,)), known, 2, np.arange(6))
    four = neighbour_bound(Problem(cov, (4,)), three, 3, np.arange(6))
    direct = neighbour_bound(Problem(cov, (4,)), known, 2, np.arange(6))
    assert four.data == direct.data
    assert four.value == direct.value == pytest.approx(4.0)
    assert four.margin == pytest.approx(direct.margin) == pytest.approx(2e-12)
    assert (
        neighbour_bound(Problem(cov, (4,)), replace(known, data={"kept": [1]}), 2, np.arange(6))
        is None
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda part: {"s": 32},
        lambda part: {"s": 33},
        lambda part: {"value": 0.99 * part["value"]},
        lambda part: {"name": "neighbour", "data": {"part": part}},
        lambda part: {"name": "parts", "data": {"parts": [part]}},
    ],
)
def test_a_forged_neighbour_is_refused(scaled, table, change):
    own = its_bound(scaled)
    part = own.data["part"]
    forged = replace(own, data={"part": {**part, **change(part)}})
    bounds = tuple(forged if bound is own else bound for bound in scaled.certificate.bounds)
    certificate = replace(scaled.certificate, bounds=bounds)
    assert not verify(replace(scaled, certificate=certificate), table)


def test_a_given_matrix_is_not_trusted_to_be_a_covariance():
    problem = Problem(covariance_of(np.eye(5)), (3,))
    assert neighbour_bound(problem, Bound("trace", 2.0), 2, np.arange(5)) is None


def test_proofs_that_serve_neighbours_stop_short_and_say_so(table, monkeypatch):
    """Of a dense path a proof ends at AIM, of two distant sizes each is proved as if alone."""
    monkeypatch.setattr(path, "SCALED", 0.0)  # every size is proved
    dense = path.sparse_path(table, n_nonzero_coefs=[40, 41])
    distant = path.sparse_path(table, n_nonzero_coefs=[32, 41])
    for found, alone in zip(dense, (dense[0], distant[1])):
        assert verify(found, table)
        assert found.bound >= alone.value * (1 - 1e-9)
        assert alone.value == pytest.approx(found.value, rel=1e-6)
    assert distant[1].certificate.gap <= 1e-6
    assert 1e-6 < dense[1].gap <= path.AIM
    assert dense[1].status == "gap"
