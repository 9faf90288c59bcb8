"""Matrices that are refused or taken, each with the reason."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, read, sparse_pca, verify

X = np.random.default_rng(0).standard_normal((20, 5))


def test_fit_refuses_a_sparse_matrix_without_entries():
    empty = sp.csr_array((4, 3))
    with pytest.raises(ValueError, match="every feature is constant"):
        sparse_pca(empty, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="every feature is constant"):
        sparse_pca(empty, n_nonzero_coefs=1, center=False)


def test_fit_refuses_sparse_covariances_and_takes_unmasked_arrays():
    with pytest.raises(ValueError, match=r"pass covariance.toarray\(\)"):
        sparse_pca(covariance=sp.eye_array(3), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="source='' is empty"):
        read("")
    unmasked = np.ma.masked_array(X, mask=False)
    assert sparse_pca(unmasked, n_nonzero_coefs=2).value == sparse_pca(X, n_nonzero_coefs=2).value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indices": np.array([0.5, 1.5])}, "indices are not integers"),
        ({"indptr": np.array([1, 1, 2])}, "index pointers do not increase from 0"),
        ({"indptr": np.array([0, 2, 1])}, "index pointers do not increase from 0"),
        ({"indptr": np.array([0, 1, 3])}, "2 indices and 2 entries for 3 places"),
        ({"data": np.ones(1)}, "should have the same size"),
        ({"indices": np.array([0, 7])}, "an index is not in 0..1"),
        ({"indices": np.array([0, -1])}, "an index is not in 0..1"),
    ],
)
def test_fit_refuses_sparse_matrices_that_were_broken_later(change, words):
    """SciPy checks what it is given once; its kernels would read beyond the arrays."""
    whole = sp.csr_array(np.diag([1.0, 2.0]))
    assert sparse_pca(whole, n_nonzero_coefs=1).supports[0].tolist() == [1]
    for name, value in change.items():
        setattr(whole, name, value)
    with pytest.raises(ValueError, match=words):
        sparse_pca(whole, n_nonzero_coefs=1)


def test_fit_names_the_first_of_many_missing_entries():
    X = np.ones((3000, 700))
    X[1500, 2] = np.nan
    X[2900, 5] = np.inf
    with pytest.raises(ValueError, match=r"1 NaN.*row 1500 .*, column 2") as caught:
        sparse_pca(X, n_nonzero_coefs=1)
    assert "2900" not in str(caught.value)


def test_infinities_are_named_beside_entries_that_are_missing():
    X = np.random.default_rng(0).standard_normal((30, 12))
    X[3, 7], X[4, 9] = np.nan, np.inf
    with pytest.raises(
        ValueError, match=r"1 infinity, the first in row 4 .counted from 0., column 9, .*remove"
    ):
        sparse_pca(X, n_nonzero_coefs=2, missing="rows")


@pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "float64"])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix])
def test_entries_stored_twice_are_summed_as_scipy_does_and_not_in_the_caller_s_arrays(
    container, dtype
):
    numbers = np.repeat(np.random.default_rng(0).integers(-1, 120, 60), 2).astype(dtype)
    numbers[:30] = 0
    rows = np.tile(np.repeat(np.arange(6)[::-1], 2), 10)
    twice = container((numbers, rows, np.arange(0, 121, 12)))
    before = [part.copy() for part in (twice.data, twice.indices, twice.indptr)]
    plain = twice.toarray().astype(float)
    for limit in (1, 1 << 30):
        result = sparse_pca(twice, n_nonzero_coefs=2, certify=False, memory_limit=limit)
        assert result.mean == pytest.approx(plain.mean(axis=0), rel=1e-12)
        assert result.total_variance == pytest.approx(plain.var(axis=0).sum(), rel=1e-12)
        assert verify(result, twice)
    after = (twice.data, twice.indices, twice.indptr)
    assert all(np.array_equal(a, b) for a, b in zip(before, after))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_pointers_that_end_at_zero_are_refused_before_compiled_code_follows_them(kind):
    table = np.random.default_rng(0).poisson(0.5, (200, 30))
    result = sparse_pca(table, n_nonzero_coefs=2)
    broken = kind(table)
    broken.indptr[-9:] = 0  # SciPy takes such a matrix for one without entries
    for call in (
        lambda: sparse_pca(broken, n_nonzero_coefs=2),
        lambda: sparse_pca(lambda: iter([broken]), n_nonzero_coefs=2),
        lambda: Moments(30).add(broken),
        lambda: Moments(30).add(table).gram([0, 1]).add(broken),
        lambda: verify(result, broken),
        lambda: verify(result, lambda: iter([broken])),
    ):
        with pytest.raises(ValueError, match=r"broken sparse matrix: .*do not increase from 0"):
            call()


def test_read_refuses_arrays_of_text_in_words(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(str))
    with pytest.raises(ValueError, match="X has dtype <U32, which does not hold numbers"):
        read(tmp_path / "x.npy")


def test_sizes_of_memory_are_numbers_of_bytes_in_words_or_digits():
    blocks = lambda: iter([X[:9], X[9:]])  # noqa: E731
    few = sparse_pca(blocks, n_nonzero_coefs=1, memory_limit=1e3)
    for written in ("1e3", "1kB", "1 K", "1000"):
        found = sparse_pca(blocks, n_nonzero_coefs=1, memory_limit=written)
        assert found.certificate.screening == few.certificate.screening
    for written, words in (("0.5", "'0.5' is less than one byte"), ("1e", "'1e' is no size")):
        with pytest.raises(ValueError, match=f"memory_limit={words}"):
            sparse_pca(blocks, n_nonzero_coefs=1, memory_limit=written)
