"""Sums that no rows have are refused, wherever they come from; those of any rows are taken."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Gram, Moments, Screened, Sums, sparse_pca, verify
from sparcipal.data.consistent import check_consistent

RNG = np.random.default_rng(1)
SPREAD = np.array([1, 1, 1, 1, 1, 2, 2, 50.0])
KINDS = {
    "integers": (RNG.poisson(3 * SPREAD, (60, 8)), None),
    "numbers": (RNG.standard_normal((60, 8)) * SPREAD, None),
    "weights": (RNG.standard_normal((60, 8)) * SPREAD, RNG.random(60)),
}


def table(rng):
    """Return rows of one of many kinds, some of their columns constant."""
    n, p = int(rng.integers(2, 40)), int(rng.integers(2, 7))
    X = [
        rng.standard_normal((n, p)) * 10.0 ** rng.integers(-300, 100, p),
        rng.standard_normal((n, p)) + 10.0 ** rng.integers(0, 15),
        rng.poisson(1.0, (n, p)),
        rng.integers(-(2**53), 2**53, (n, p)),
        rng.random((n, p)) * (rng.random((n, p)) < 0.3),
        rng.standard_normal((n, p)).astype(np.float32),
    ][rng.integers(6)]
    X[:, 0] = X[0, 1]
    return X


@pytest.mark.parametrize("seed", range(60))
def test_sums_of_any_rows_are_taken_however_these_were_cut_and_merged(seed):
    rng = np.random.default_rng(seed)
    X = table(rng)
    n, p = X.shape
    weights = 10.0 ** rng.uniform(-6, 6, n) if seed % 3 == 0 else None
    parts = np.array_split(rng.permutation(n), rng.integers(1, 5))
    forms = [sp.csr_array if rng.random() < 0.5 else np.asarray for _ in parts]
    moments = Moments(p)
    for rows, form in zip(parts, forms):
        share = None if weights is None else weights[rows]
        own = Moments(p).add(form(X[rows]), share)
        moments = moments.merge(own) if rng.random() < 0.5 else own.merge(moments)
    gram = moments.gram(moments.screen(p - 1))
    for rows, form in zip(parts, forms):
        gram.add(form(X[rows]), None if weights is None else weights[rows])
    check_consistent(moments, gram)
    check_consistent(Moments.from_arrays(moments.arrays()), Gram.from_arrays(gram.arrays()))
    if moments.exact and gram.exact and len(parts) > 1:
        gone = Moments(p).add(X[parts[0]])
        check_consistent(moments.subtract(gone), gram.subtract(gram.copy_empty().add(X[parts[0]])))


def constant(z):
    z["moments_high"][7] = z["moments_low"][7]


def narrow(z):
    z["moments_low"][7] = z["moments_high"][7] - 1


def no_squares(z):
    z["moments_squares"].flat[7] = 0


def more_rows(z):
    z["moments_rows"][0] *= 10


def fewer_than_none(z):
    z["moments_rows"][0] = z["gram_rows"][0] = -60


def asymmetric(z):
    z["gram_second"][0, -1] += 1


def larger_products(z):
    z["gram_second"][0, 1] = z["gram_second"][1, 0] = 10**9


def other_columns(z):
    z["gram_columns"] = z["gram_columns"] + 3


def negative_columns(z):
    z["gram_columns"] = z["gram_columns"] - 1


def larger_sums(z):
    z["moments_sums"].flat[7] += 10**6


FORGED = [
    constant, narrow, no_squares, more_rows, fewer_than_none, asymmetric, larger_products,
    other_columns, negative_columns, larger_sums,
]  # fmt: skip


def saved(kind, path):
    X, weights = KINDS[kind]
    Sums.of(X, sample_weight=weights).save(path)
    with np.load(path) as found:
        return dict(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_a_file_of_sums_that_contradict_themselves_is_refused(kind, forge, tmp_path):
    path = tmp_path / "model.sums"
    parts = saved(kind, path)
    forge(parts)
    with open(path, "wb") as stream:
        np.savez(stream, **parts)
    with pytest.raises(ValueError, match=r"model\.sums does not hold sums \(.*sum over the rows"):
        Sums.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_of_sums_is_a_valueerror_that_names_it(kind, tmp_path):
    path = tmp_path / "model.sums"
    whole = saved(kind, path)
    for name, array in whole.items():
        changes = [array[:-1], array.astype("U5"), array.reshape(-1, 1), None]
        if array.dtype.kind in "iuf" and name != "moments_low":
            changes += [array.astype(np.complex128), array.astype(np.float32), array.astype(bool)]
        for change in changes:
            parts = {**whole, name: change}
            same = name in ("names", "last") or (change is None and name == "gram_shift")
            if change is None:
                del parts[name]
            with open(path, "wb") as stream:
                np.savez(stream, **parts)
            if same:  # names may be absent, and the products of numbers may be about zero
                continue
            with pytest.raises(ValueError, match=r"model\.sums does not hold sums"):
                Sums.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_refuses_sums_that_contradict_themselves(kind):
    X, weights = KINDS[kind]
    sums = Sums.of(X, sample_weight=weights)
    result = sparse_pca(covariance=sums, n_nonzero_coefs=1)
    assert verify(result, covariance=sums).verdict == "proved"
    forged = pickle.loads(pickle.dumps(sums))
    forged.moments.high[7] = forged.moments.low[7]
    with pytest.raises(ValueError, match="contradict themselves: column 7"):
        sparse_pca(covariance=forged, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="contradict themselves: column 7"):
        Screened.of(forged.moments, forged.gram)
    found = verify(result, covariance=forged)
    assert found.verdict == "refused"
    assert "contradict themselves: column 7" in found.reason


def test_numbers_of_columns_and_features_that_are_no_integers_are_refused():
    moments = Moments(3).add(np.eye(3))
    for columns in ([0.5, 1.7], [-1, 0], [1, 0], [True, False, True], [[0, 1]], np.uint8([2, 1])):
        with pytest.raises(ValueError, match="columns must be increasing integers from 0 on"):
            moments.gram(columns)
    with pytest.raises(ValueError, match="there is no column 3: they are 0 to 2"):
        moments.gram([0, 3])
    with pytest.raises(TypeError, match="n_features must be an integer, got 2"):
        Moments(2.5)
    with pytest.raises(ValueError, match="n_features=-1 must be at least 0"):
        Moments(-1)
