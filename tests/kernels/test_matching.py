"""The assignment of features to components against SciPy's dense assignment, ties and all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sparcipal.kernels.matching import augment
from sparcipal.search.assign import assign


def dense_value(weight: np.ndarray, need: np.ndarray) -> float:
    copies = np.repeat(weight, need, axis=0)  # need[j] copies of every column
    rows, features = linear_sum_assignment(copies, maximize=True)
    return float(copies[rows, features].sum())


def value(weight: np.ndarray, owner: np.ndarray) -> float:
    rows = np.flatnonzero(owner >= 0)
    return float(weight[owner[rows], rows].sum())


def random_case(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    k = int(rng.integers(1, 6))
    need = rng.integers(1, 6, size=k)
    p = int(need.sum() + rng.integers(0, 20))
    kind = rng.integers(6)
    weight = rng.random((k, p))
    if kind == 1:
        weight = rng.integers(0, 3, size=(k, p)).astype(float)  # ties everywhere
    elif kind == 2:
        weight[rng.integers(k)] = 0.0  # a column worth nothing
    elif kind == 3:
        weight = np.repeat(rng.random((1, p)), k, axis=0)  # all columns want the same
    elif kind == 4:
        weight *= 10.0 ** rng.integers(-12, 13, size=(k, 1))
    elif kind == 5:
        weight = np.square(rng.standard_normal((k, 1)) * rng.standard_normal(p))
    return weight, need


def test_matching_equals_the_dense_assignment() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        weight, need = random_case(rng)
        owner = assign(weight.copy(), need)
        assert (np.bincount(owner[owner >= 0], minlength=need.size) == need).all()
        best = dense_value(weight, need)
        assert value(weight, owner) == pytest.approx(best, rel=1e-12, abs=1e-300)


@pytest.mark.kernels
@pytest.mark.parametrize("weight", [np.zeros((3, 9)), np.ones((3, 9)), np.eye(3, 9)])
def test_matching_is_optimal_when_all_weights_tie(weight: np.ndarray) -> None:
    need = np.array([3, 2, 4])
    owner = assign(weight, need)
    assert (np.bincount(owner[owner >= 0], minlength=3) == need).all()
    assert value(weight, owner) == dense_value(weight, need)


@pytest.mark.kernels
def test_matching_leaves_rows_of_negative_weight_free() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        weight = rng.random((3, 20))
        blocked = rng.permutation(20)[:8]
        weight[:, blocked] = -1.0
        assert (assign(weight, np.array([4, 4, 4]))[blocked] == -1).all()


def augment_twin(weight: np.ndarray, missing: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Counts grow by `missing`: the best assignment for the new counts, by SciPy."""
    counts = np.bincount(owner[owner >= 0], minlength=weight.shape[1]) + missing
    copies = np.repeat(weight.T, counts, axis=0)
    rows, features = linear_sum_assignment(copies, maximize=True)
    best = np.full(weight.shape[0], -1)
    best[features] = np.repeat(np.arange(counts.size), counts)[rows]
    return best


@pytest.mark.kernels
def test_augmenting_paths_equal_their_twin() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        m, k = 14, int(rng.integers(1, 5))
        weight = np.ascontiguousarray(rng.integers(0, 6, size=(m, k)).astype(float))
        owner = np.full(m, -1)
        missing = rng.integers(0, 4, size=k)
        twin = augment_twin(weight, missing, owner)
        left = missing.copy()
        integers, reals = np.empty((k + 2, k), dtype=np.int64), np.empty((k + 1, k))
        augment(
            weight, left, owner, reals[:k], integers[:k], reals[k], integers[k], integers[k + 1]
        )
        assert (left == 0).all()
        assert value(weight.T, owner) == pytest.approx(value(weight.T, twin))


@pytest.mark.parametrize("held", [0.0, 6.0])
def test_a_cycle_of_gains_leaves_the_best_free_row(held: float) -> None:
    """Rounding could close a cycle; here an assignment that is not optimal does."""
    weight = np.array([[5.0, 0.0], [1.0, 0.0], [held, 10.0], [10.0, 0.0]])
    owner, missing = np.array([-1, -1, 0, 1]), np.array([1, 0])
    integers, reals = np.zeros((4, 2), dtype=np.int64), np.zeros((3, 2))
    augment(weight, missing, owner, reals[:2], integers[:2], reals[2], integers[2], integers[3])
    assert owner.tolist() == [0, -1, 0, 1]
    assert missing.tolist() == [0, 0]
    rows = np.array([2, 3, 0, 1])  # the rows that are held come first
    owner, missing = np.array([0, 1, -1, -1]), np.array([1, 0])
    augment(
        weight[rows], missing, owner, reals[:2], integers[:2], reals[2], integers[2], integers[3]
    )
    assert owner.tolist() == [0, 1, 0, -1]


def test_matching_finds_paths_through_every_column() -> None:
    """The only free row is worth something to the last column: every column hands a row on."""
    for k in range(2, 8):
        weight = np.zeros((k, k))
        weight[0, k - 1] = 1.0
        for j in range(1, k):
            weight[j, j] = weight[j, j - 1] = 1.0
        owner, missing = np.arange(k), np.zeros(k, dtype=np.int64)
        owner[0], missing[0] = -1, 1
        integers, reals = np.zeros((k + 2, k), dtype=np.int64), np.zeros((k + 1, k))
        augment(
            weight, missing, owner, reals[:k], integers[:k], reals[k], integers[k], integers[k + 1]
        )
        assert owner.tolist() == [k - 1, *range(k - 1)]


def test_ties_within_rounding_close_no_cycle() -> None:
    """Equal gains up to rounding, for every scale: all needs are met, and nothing is lost."""
    rng = np.random.default_rng(3)
    for scale in (1e-9, 1.0, 1e9):
        for _ in range(200):
            k = int(rng.integers(2, 6))
            row = rng.random(12)
            weight = scale * (row + 1e-16 * rng.standard_normal((k, 12)) + rng.random((k, 1)))
            need = rng.integers(1, 3, size=k)
            owner = assign(weight.copy(), need)
            assert (np.bincount(owner[owner >= 0], minlength=k) == need).all()
            best = dense_value(weight, need)
            assert value(weight, owner) == pytest.approx(best, rel=1e-13)
