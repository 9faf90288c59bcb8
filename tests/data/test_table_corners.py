"""Tables, sums over rows, sketches and questions at their edges, with values known beforehand."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, Result, SparsePCA, read, sparse_path, sparse_pca, verify
from sparcipal.bounds.cheap import _minimise, _row_tops
from sparcipal.data.fileblock import FileBlock, Piece
from sparcipal.data.passes import source_of
from sparcipal.data.products import Gram
from sparcipal.fit import _percent
from sparcipal.problem import sketch as sketches
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.monitor import Monitor
from tests.support.brute import sparse_rows

X = np.random.default_rng(0).standard_normal((20, 5))


# --- rows of files ---


def test_rows_of_files_are_opened_where_they_are_read(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    block = FileBlock.of(mapped, 3, 9)
    assert block is not None
    there = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(there.open(), X[3:9])
    assert FileBlock.of(X, 3, 9) is None, "rows in memory have no file"
    assert Piece.of(mapped[:, 1:3]) is None, "columns do not lie together"


def test_sparse_rows_of_files(tmp_path):
    S = sparse_rows((12, 7), 0.4, 1)
    S.data[:] = np.arange(S.nnz) + 1.0
    parts = {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(S, name))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    from sparcipal.data.rows import csr_of

    mapped = csr_of(parts["data"], parts["indices"], parts["indptr"], S.shape)
    block = FileBlock.of(mapped, 2, 8)
    assert block is not None
    np.testing.assert_array_equal(block.open().toarray(), S[2:8].toarray())
    nothing = FileBlock.of(mapped, 4, 4)
    assert nothing is not None
    assert nothing.open().shape == (0, 7)


# --- tables in blocks ---


def test_blocks_that_change_their_names():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(X[:9], columns=list("abcde"))]
    frames.append(pandas.DataFrame(X[9:], columns=list("abcdf")))
    with pytest.raises(ValueError, match="block 1 has other feature names than the first one"):
        sparse_pca(lambda: iter(frames), n_nonzero_coefs=2)


def test_a_first_block_that_is_no_table():
    with pytest.raises(ValueError, match="NaN") as caught:
        sparse_pca(lambda: iter([X * np.nan, X]), n_nonzero_coefs=2)
    assert "block" not in str(caught.value), "rows count from the first one of the table"


def test_weights_of_rows_that_are_not_there():
    for weights in (np.ones(19), np.ones(21)):
        with pytest.raises(ValueError, match=r"but there are (more|20) rows"):
            sparse_pca(
                lambda: iter([X[:9], X[9:]]),
                n_nonzero_coefs=2,
                sample_weight=weights,
                memory_limit=1,
            )


def test_functions_without_rows():
    with pytest.raises(ValueError, match="at least one"):
        sparse_pca(lambda: iter([]), n_nonzero_coefs=2)
    with pytest.raises(ValueError, match="0 sample"):
        sparse_pca(lambda: iter([np.empty((0, 5))]), n_nonzero_coefs=2, memory_limit=1)


def test_sparse_blocks_that_fit_are_the_table():
    S = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    table = source_of(lambda: iter([S[:9], S[9:]]), None, 1 << 20, Monitor())
    np.testing.assert_array_equal(table.X.toarray(), S.toarray())
    whole = sparse_pca(S, n_nonzero_coefs=2)
    blocks = sparse_pca(lambda: iter([S[:9], S[9:].toarray()]), n_nonzero_coefs=2)
    assert blocks.value == pytest.approx(whole.value, rel=1e-12)


def test_nothing_but_zeros_stored():
    empty = sp.csr_array((4, 3))
    with pytest.raises(ValueError, match="every feature is constant"):
        sparse_pca(empty, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="every feature is constant"):
        sparse_pca(empty, n_nonzero_coefs=1, center=False)


# --- sums of products ---


def large(exponent: int) -> np.ndarray:
    return np.array([[2**exponent, 1, 0], [2**exponent - 1, 0, 3]], dtype=np.int64)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exponent", [4, 16, 30, 31])
def test_products_of_integers_of_every_size(layout, exponent):
    """Exact, in whatever words the sums need; Python's integers are the judge."""
    table = large(exponent)
    columns = np.arange(3)
    gram = Gram(columns)
    for _ in range(3):
        gram.add(layout(table))
    exact = 3 * (table.astype(object).T @ table.astype(object))
    assert gram.exact
    assert (np.asarray(gram.second, dtype=object) == exact).all()


def test_sums_of_different_words_merge():
    """One part in Python's integers, the other in words: nothing is lost, in either order."""
    wide, narrow = Gram(np.arange(3)), Gram(np.arange(3))
    for _ in range(3):
        wide.add(large(31))
    narrow.add(large(4))
    exact = 3 * (large(31).astype(object).T @ large(31).astype(object))
    exact = exact + large(4).astype(object).T @ large(4).astype(object)
    assert wide.second.dtype == object
    assert narrow.second.dtype != object
    assert (np.asarray(wide.merge(narrow).second, dtype=object) == exact).all()


def test_fractions_in_sparse_rows():
    """Products of fractions by rows, against the dense sums."""
    wide = sparse_rows((40, 3000), 0.002, 2)
    columns = np.arange(0, 3000, 3)
    gram = Gram(columns).add(wide)
    dense = wide.toarray()[:, columns]
    np.testing.assert_allclose(gram.second * 4.0**-gram.exponent, dense.T @ dense, atol=1e-12)
    assert not gram.exact


def test_magnitudes_of_nothing():
    assert Moments(3).add(sp.csr_array((4, 3))).sums.tolist() == [0.0, 0.0, 0.0]


# --- sketches ---


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_what_a_sketch_of_few_samples_misses(layout, monkeypatch):
    """Proved by a factorisation of order n; the level is found by bisection where none is known."""
    table = np.random.default_rng(3).standard_normal((6, 30))
    cov = covariance_of_data(layout(table))[0]
    A = cov.dense()
    for kind in ("gaussian", "randomized", "eigen"):
        made = sketches.sketch(cov, 3, kind=kind)
        missed = float(np.linalg.eigvalsh(A - made.V @ made.V.T)[-1])
        assert made.proof == ("features" if missed < 1e-6 else "samples")
        assert missed <= made.tail <= missed * 1.01 + 1e-6
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 20)
    made = sketches.sketch(cov, 3, kind="gaussian")
    assert made.proof == "samples"
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 5)
    pairs = sketches.spectrum(cov, 4)
    by_trace = sketches.majorant(cov, pairs, 3)
    assert by_trace.proof == "trace"
    missed = float(np.linalg.eigvalsh(A - by_trace.V @ by_trace.V.T)[-1])
    assert missed <= by_trace.tail < np.trace(A)


def test_a_sketch_in_directions_without_variance(monkeypatch):
    """The trace of the residual needs variance in every direction of the sketch."""
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 1)
    A = np.diag([2.0, 1.0, 0.0])
    cov = covariance_of(A)
    guess = sketches.Sketch(np.eye(3)[:, 1:], np.inf, 0.0, "none", "eigen")
    assert sketches.prove(cov, guess, None).tail == np.inf


# --- small pieces ---


def test_a_search_on_an_interval_that_is_a_point():
    assert _minimise(lambda x: x * x, 2.0, 2.0) == 2.0
    assert _minimise(lambda x: (x - 0.3) ** 2, 0.0, 1.0) == pytest.approx(0.3, abs=1e-2)
    rows = np.array([[3.0, 1.0, 2.0]])
    assert sorted(_row_tops(rows, 5)[0]) == [1.0, 2.0, 3.0]
    assert sorted(_row_tops(rows, 2)[0]) == [2.0, 3.0]


def test_percents_round_up():
    assert [_percent(f) for f in (0.0, np.inf, 0.0123401)] == ["0 %", "inf %", "1.24 %"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nonzero_coefs": {"total": 3}, "supports": "free"}, "needs supports='disjoint'"),
        ({"n_nonzero_coefs": {"total": 3}, "method": "em"}, "needs method="),
        ({"n_components": 6, "supports": "free"}, "there are no more directions"),
        ({"method": "dspca", "method_options": {"tol": "a"}}, "tol"),
    ],
)
def test_questions_that_have_no_answer(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sparse_pca(X, **{"n_components": 2, "n_nonzero_coefs": 2, **settings})


def test_sparse_covariances_and_empty_names():
    with pytest.raises(ValueError, match=r"pass covariance.toarray\(\)"):
        sparse_pca(covariance=sp.eye_array(3), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="source='' is empty"):
        read("")
    unmasked = np.ma.masked_array(X, mask=False)
    assert sparse_pca(unmasked, n_nonzero_coefs=2).value == sparse_pca(X, n_nonzero_coefs=2).value


def test_a_covariance_has_no_samples_to_score():
    result = sparse_pca(covariance=np.cov(X.T), n_nonzero_coefs=2)
    from sparcipal.data.scores import Scorer

    with pytest.raises(ValueError, match="there are no samples to score"):
        Scorer(result)


def test_names_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    model = SparsePCA(1, 2, certify=False).fit(pandas.DataFrame(X, columns=list("abcde")))
    assert model.feature_names_in_.tolist() == list("abcde")
    model.set_params(memory_limit=1).fit(lambda: iter([X[:9], X[9:]]))
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 5


def test_a_callback_that_cannot_be_called():
    with pytest.raises((TypeError, ValueError), match="callback"):
        SparsePCA(1, 2, callback=3).fit(X)


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path):
    result = sparse_pca(X, n_nonzero_coefs=2)
    path = tmp_path / "model.json"
    result.save(path)
    before = path.read_bytes()
    (tmp_path / "model.json.proof").unlink()
    (tmp_path / "model.json.proof").mkdir()
    with pytest.raises(OSError, match=r"director"):
        sparse_pca(X, n_nonzero_coefs=3).save(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.json.proof"]


def test_results_of_nonnegative_paths_verify():
    path = sparse_path(X, n_nonzero_coefs=[1, 2, 4], nonnegative=True, certify=False)
    for result in path.results:
        assert verify(Result.from_json(result.to_json()), X)
