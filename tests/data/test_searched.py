"""Which features are searched, and by which road their covariance is formed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import read as read_texts
from sparcipal import sparse_pca, verify
from sparcipal.data import searched as roads
from sparcipal.data.inputs import Input
from sparcipal.data.rows import fits_memory
from sparcipal.data.searched import Known, Searched
from sparcipal.data.sources import as_rows
from sparcipal.data.table import as_table
from sparcipal.problem.constraints import Constraints
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Component
from tests.support.brute import best_value, covariance

NOTHING = Constraints()


def counts(rows: int, columns: int) -> np.ndarray:
    """Frequent and rare words, of which the first six go together."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2 / np.arange(1, columns + 1), size=(rows, columns))
    X[:, :6] += rng.poisson(1.0, size=(rows, 1))
    return X


def read(X, limit: int, scale: bool = False) -> Searched:
    return Searched(Input(as_rows(X), None), True, scale, limit, Monitor())


@pytest.mark.parametrize(
    "make", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"]
)
def test_large_tables_of_integers_have_one_answer_at_every_limit(monkeypatch, make):
    monkeypatch.setattr(roads, "LARGE", 1000)
    X, asked = make(counts(20_000, 30)), {"n_components": 3, "n_nonzero_coefs": 4}
    less, more = (sparse_pca(X, **asked, memory_limit=limit) for limit in (2_000_000, 1 << 30))
    assert more.certificate.screening["dropped"] == 0
    assert less.to_json() == more.to_json()
    assert verify(more, X).verdict == "proved"


def test_a_table_of_few_samples_is_searched_whole(monkeypatch):
    monkeypatch.setattr(roads, "LARGE", 1000)
    X = np.random.default_rng(0).standard_normal((20, 60))
    assert not sparse_pca(X, n_components=2, n_nonzero_coefs=3).certificate.screening


@pytest.mark.parametrize(
    ("asked", "screened"),
    [({}, True), ({"supports": "free"}, False), ({"certify": "full"}, False)],
    ids=["disjoint", "free", "full"],
)
def test_a_costly_table_is_begun_with_the_features_that_vary_most(monkeypatch, asked, screened):
    """Where the default proof may leave a small gap, and the bound can be extended closely."""
    for name in ("LARGE", "SCREENED"):
        monkeypatch.setattr(roads, name, 1000)
    spread = np.r_[np.full(30, 1.0), np.full(1000, 1e-3)]
    X = np.random.default_rng(0).standard_normal((40, 1030)) * spread
    found = sparse_pca(X, n_components=2, n_nonzero_coefs=2, max_nodes=100, **asked)
    assert bool(found.certificate.screening) == screened


def test_tables_are_held_if_a_copy_and_their_covariance_fit():
    X = np.zeros((20, 50))
    needed = 2 * X.nbytes + 8 * 50**2
    assert fits_memory(X, needed)
    assert not fits_memory(X, needed - 1)


def test_excluded_features_are_not_kept_and_add_nothing():
    """Two words that would be the most of what is dropped, and the first ones that are kept."""
    X = counts(220, 228)
    asked = {"n_components": 2, "n_nonzero_coefs": [1, 2], "memory_limit": 220_000}
    without = sparse_pca(X[:, 2:], **asked)
    found = sparse_pca(X, **asked, exclude=[0, 1])
    kept = found.certificate.bounds[0].data["screened"]["kept"]
    assert not {0, 1} & set(kept)
    assert [s.tolist() for s in found.supports] == [(s + 2).tolist() for s in without.supports]
    assert found.certificate.gap == pytest.approx(without.certificate.gap, abs=1e-12)
    assert found.certificate.screening["dropped"] == without.certificate.screening["dropped"]
    for arithmetic in ("float", "exact"):
        assert verify(found, X, arithmetic=arithmetic).verdict == "proved"


def test_rows_of_all_features_leave_excluded_ones_out():
    """Noise of large variance that no component may use must not stand in the way of a proof."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 120))
    X[:, 20:26] = 0.9 * rng.standard_normal((400, 1)) + 0.4 * X[:, 20:26]
    X[:, :10] *= 5
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "memory_limit": 60_000}
    without = sparse_pca(X[:, 10:], **asked)
    found = sparse_pca(X, **asked, exclude=range(10))
    assert found.certificate.screening["rule"] == "rows"
    assert found.certificate.gap <= without.certificate.gap + 1e-6
    assert verify(found, X).verdict == "proved"
    assert verify(found, X, arithmetic="exact").verdict == "proved"


def test_anchors_are_kept_however_little_they_vary():
    X = counts(220, 228)
    found = sparse_pca(X, n_nonzero_coefs=3, memory_limit=60_000, include=[200])
    assert found.certificate.screening["dropped"] > 0
    assert 200 in found.certificate.bounds[0].data["screened"]["kept"]
    assert verify(found, X).verdict == "proved"


def test_units_of_standardised_columns_choose_no_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300))
    for first in range(0, 100, 10):
        X[:, first : first + 10] += rng.standard_normal((600, 1))

    def kept(table):
        searched = read(table, 400_000, scale=True)
        searched.begin(20, NOTHING, rough=True)
        return searched.data.survivors.kept

    assert kept(X).size == 100
    units = np.where(np.arange(300) < 100, 0.25, 16.0)
    np.testing.assert_array_equal(kept(X), kept(X * units))


def partners(rows: int = 500) -> np.ndarray:
    """Noise, and a pair of features that belong together, one of which varies least of all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 100)) * np.linspace(2.0, 1.5, 100)
    X[:, 99] = 0.6 * X[:, 0] + 0.1 * X[:, 99]
    return X


@pytest.mark.parametrize("limit", [40 * 20**2, 40 * 60**2], ids=["exchanged", "added"])
def test_features_that_a_component_would_gain_from_are_kept_until_there_are_none(limit):
    X = partners()
    searched = read(X, limit)
    searched.begin(2, NOTHING)
    chosen = np.argsort(-X.var(axis=0))[:20]
    searched.among(np.sort(chosen), 2, NOTHING)
    kept = searched.data.survivors.kept
    assert 99 not in kept
    support = np.searchsorted(kept, np.sort([0, kept[1]]))
    weights, A = np.array([1.0, 0.0]), searched.data.covariance
    known = Known([Component(support, weights)], [float(A.diagonal[support[0]])], False)
    assert searched.beside(known)
    now = searched.data.survivors.kept
    assert 99 in now
    assert 0 in now
    places = np.searchsorted(now, [0, 99])
    A = searched.data.covariance.submatrix(places)
    values, vectors = np.linalg.eigh(A)
    better = Known([Component(places, vectors[:, 1])], [float(values[1])], False)
    assert not searched.beside(better)


def test_a_search_among_kept_features_looks_outside_while_its_gap_is_wide():
    """What bounds the kept features bounds all, but the best components have others."""
    X = partners()
    best = best_value(covariance(X), (2,))
    found = sparse_pca(lambda: iter([X]), n_nonzero_coefs=2, memory_limit=40 * 20**2)
    assert found.value >= best * (1 - 1e-9)


def test_a_table_and_its_rows_have_one_answer():
    X = as_table(counts(60, 20))
    asked = {"n_components": 2, "n_nonzero_coefs": 3}
    held, rows = sparse_pca(X, **asked), sparse_pca(lambda: iter([X.X]), **asked, memory_limit=1)
    assert rows.value == pytest.approx(held.value, rel=1e-12)


def test_texts_that_are_read_in_passes_tell_how_their_words_were_counted():
    texts = read_texts(["alpha beta gamma", "beta gamma delta", "alpha delta delta"] * 5)
    asked = {"n_components": 1, "n_nonzero_coefs": 2}
    held, passes = (sparse_pca(texts, **asked, memory_limit=limit) for limit in (1 << 30, 10))
    assert passes.certificate.screening
    assert passes.info["texts"] == held.info["texts"]


def test_features_that_may_not_be_used_are_not_looked_for_either():
    X = partners()
    searched, asked = read(X, 40 * 20**2), Constraints(exclude=(99,))
    chosen = np.argsort(-X.var(axis=0))[:20]
    searched.begin(2, asked)
    searched.among(np.sort(chosen), 2, asked)
    place = np.searchsorted(np.sort(chosen), 0)
    known = Known([Component(np.array([place]), np.ones(1))], [float(X[:, 0].var())], False)
    while searched.beside(known):
        assert 99 not in searched.data.survivors.kept


def test_anchors_stay_where_features_are_exchanged():
    """Those of loading zero are in no support."""
    X, anchor = partners(), 50
    searched, asked = read(X, 40 * 20**2), Constraints(include=((anchor,),))
    chosen = np.union1d(np.argsort(-X.var(axis=0))[:19], [anchor])
    searched.begin(2, asked)
    searched.among(chosen, 2, asked)
    place = np.searchsorted(chosen, 0)
    known = Known([Component(np.array([place]), np.ones(1))], [float(X[:, 0].var())], False)
    assert searched.exchange(np.arange(60, 90), known)
    kept = searched.data.survivors.kept
    assert kept.size == 20
    assert {0, anchor} <= set(kept)
