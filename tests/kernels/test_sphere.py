"""The compiled search over cones: limits, rounds and room, against all supports."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparcipal.bounds.lowrank import cones
from sparcipal.bounds.lowrank.sphere import Effort, sphere_search
from sparcipal.kernels import sphere

pytestmark = pytest.mark.kernels


def best_of_rank_two(V: np.ndarray, s: int) -> float:
    """Every support: the largest eigenvalue of V V' on it."""
    supports = itertools.combinations(range(len(V)), s)
    return max(float(np.linalg.norm(V[list(S)], 2)) ** 2 for S in supports)


@pytest.mark.parametrize("limit", [3, 9, 2000])
def test_sphere_search_has_a_valid_bound_when_it_stops_at_its_limit(limit):
    V = np.random.default_rng(1).standard_normal((7, 3))
    best = best_of_rank_two(V, 3)
    found = sphere_search(V, 3, effort=Effort(1e-3, max_cones=limit, starts=2))
    assert found.value <= best * (1 + 1e-12)
    assert found.bound >= best * (1 - 1e-12)
    assert (found.bound <= best * (1 + 2e-3)) == (limit == 2000)


def directions(p: int, r: int, seed: int) -> np.ndarray:
    """Rows of one length: every direction is about as good, so that much has to be split."""
    V = np.random.default_rng(seed).standard_normal((p, r))
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_sphere_search_proves_the_same_in_regions_and_when_tables_grow(monkeypatch):
    """Tables that are full are doubled; a search that is long goes on in regions of the sphere."""
    V = directions(10, 5, 1)
    whole = sphere_search(V, 2, effort=Effort(1e-3, starts=2))
    assert whole.tree.size > 500, "more points than there is room for at first"
    monkeypatch.setattr(cones, "ROUND", 300)
    regions = sphere_search(V, 2, effort=Effort(1e-3, starts=2))
    assert regions.finished
    assert regions.value == pytest.approx(whole.value, rel=1e-3)
    assert whole.value <= regions.bound <= regions.value * 1.0011


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sphere_search_finds_the_best_rows_when_no_start_does(seed):
    """From the axes alone ascents miss the best rows; splitting cones comes across them."""
    V = directions(12, 3, seed)
    found = sphere_search(V, 2, effort=Effort(1e-4, starts=0))
    assert found.value == pytest.approx(best_of_rank_two(V, 2), rel=1e-4)


def test_ascend_is_zero_from_a_point_orthogonal_to_all_rows():
    rows, sizes = np.array([[0.0, 1.0]]), np.ones(1)
    c, spare = np.array([1.0, 0.0]), np.zeros(2)
    question, selection = (rows, sizes, np.zeros(1), 1, False), (np.empty(1), np.empty(1, int))
    best = sphere.ascend(question, c, np.empty(0), selection, spare)
    assert best == 0.0
