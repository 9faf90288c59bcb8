"""Tables that are not held in memory: blocks of rows, and what is refused of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparcipal import Moments, sparse_pca, verify
from sparcipal.data.sources import as_rows

X = np.random.default_rng(0).standard_normal((20, 5))


def test_rows_gather_the_table_from_blocks_of_any_kind():
    dense = as_rows(lambda: iter([X[:7], X[7:]]))
    np.testing.assert_array_equal(dense.gather().X, X)
    sparse = as_rows(lambda: iter([sp.csr_array(X[:7]), X[7:]]))
    np.testing.assert_array_equal(sparse.gather().X.toarray(), X)
    np.testing.assert_array_equal(as_rows(sp.csc_array(X)).gather().X.toarray(), X)


def test_rows_refuse_blocks_that_do_not_fit():
    with pytest.raises(ValueError, match="feature_names has 2 names, but there are 5 features"):
        as_rows(X, feature_names=["a", "b"])
    with pytest.raises(TypeError, match="can be read once only"):
        as_rows(iter([X]))
    bad = X.astype(complex)
    bad[9, 1] = 1j
    late = as_rows(lambda: iter([X[:7], bad[7:]]))
    with pytest.raises(
        ValueError, match=r"block 1 .its row 0 is row 7 of the table, counted from 0.*Complex"
    ):
        late.accumulate(Moments(5))
    uneven = as_rows(lambda: iter([X[:7], X[7:, :4]]))
    with pytest.raises(ValueError, match="block 1 has 4 features, but the first one has 5"):
        uneven.accumulate(Moments(5))


def test_fit_refuses_blocks_that_change_their_names():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(X[:9], columns=list("abcde"))]
    frames.append(pandas.DataFrame(X[9:], columns=list("abcdf")))
    with pytest.raises(ValueError, match=r"block 1 .* lacks 'e' and has 'f', compared with"):
        sparse_pca(lambda: iter(frames), n_nonzero_coefs=2)


@pytest.mark.parametrize("limit", ["1GiB", 100])
def test_a_column_that_only_later_blocks_have_is_refused_by_name(limit):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    more = [frame[:9], frame[9:].assign(z=1000.0)]
    with pytest.raises(ValueError, match=r"block 1 .* has 'z', compared with the first one"):
        sparse_pca(lambda: iter(more), n_nonzero_coefs=2, memory_limit=limit)


def dated(frame, pandas):
    return frame.assign(o=pandas.to_datetime(["2024-01-01"] * len(frame)))


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_a_column_of_dates_in_one_block_and_numbers_in_another_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    days, numbers = dated(frame[:9], pandas), frame[9:].assign(o=1.0)
    with pytest.raises(ValueError, match=r"'o' \(dates before, numbers now\)"):
        sparse_pca(lambda: iter([days, numbers]), n_nonzero_coefs=2)
    with pytest.raises(ValueError, match=r"hold no numbers: 'o' \(dates\)"):
        sparse_pca(lambda: iter([numbers, days]), n_nonzero_coefs=2)


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_a_column_that_begins_without_an_entry_is_what_follows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    blocks = [frame[:9].assign(o=None), frame[9:].assign(o="x")]
    rows = as_rows(lambda: iter(blocks))
    assert rows.notes == ("set aside, not fitted: 'o' (text)",)
    assert rows.feature_names == tuple("abcde")


def test_fit_counts_rows_from_the_table_when_the_first_block_is_bad():
    with pytest.raises(ValueError, match="NaN") as caught:
        sparse_pca(lambda: iter([X * np.nan, X]), n_nonzero_coefs=2)
    assert "block" not in str(caught.value), "rows count from the first one of the table"


def test_fit_refuses_weights_of_another_number_of_rows():
    for weights in (np.ones(19), np.ones(21)):
        with pytest.raises(ValueError, match=r"but there are (more|20) rows"):
            sparse_pca(
                lambda: iter([X[:9], X[9:]]),
                n_nonzero_coefs=2,
                sample_weight=weights,
                memory_limit=1,
            )


def test_fit_refuses_functions_without_rows():
    with pytest.raises(ValueError, match="at least one"):
        sparse_pca(lambda: iter([]), n_nonzero_coefs=2)
    with pytest.raises(ValueError, match="gives no row"):
        sparse_pca(lambda: iter([np.empty((0, 5))]), n_nonzero_coefs=2, memory_limit=1)


@pytest.mark.parametrize("limit", [1, "1GB"], ids=["in passes", "held"])
def test_blocks_without_rows_add_nothing(limit):
    whole = sparse_pca(lambda: iter([X[:7], X[7:]]), n_nonzero_coefs=2, memory_limit=limit)
    for at in range(3):
        blocks = [X[:7], X[7:]]
        blocks.insert(at, X[:0])
        some = sparse_pca(lambda b=blocks: iter(b), n_nonzero_coefs=2, memory_limit=limit)
        assert (some.value, some.bound) == (whole.value, whole.bound)


def test_entries_that_are_missing_are_counted_over_all_blocks():
    """The words are those for the same table in memory."""
    bad = X.astype(float)
    bad[3:15, 1] = bad[12, 4] = np.nan
    with pytest.raises(ValueError, match="NaN") as held:
        sparse_pca(bad, n_nonzero_coefs=2)
    assert "13 NaN, the first in row 3 (counted from 0)" in str(held.value)
    assert "'x1' 12, 'x4' 1" in str(held.value)
    for cuts in ([7], [4, 9], [1, 2, 3]):
        blocks = np.split(bad, cuts)
        with pytest.raises(ValueError, match="NaN") as caught:
            sparse_pca(lambda b=blocks: iter(b), n_nonzero_coefs=2, memory_limit=1000)
        assert str(caught.value) == str(held.value)


def test_infinities_of_later_blocks_are_counted_with_missing_entries():
    bad = X.astype(float)
    bad[3, 1], bad[15, 2] = np.nan, np.inf
    with pytest.raises(
        ValueError, match="1 NaN and 1 infinity, the first in row 3 \\(counted from 0\\), column 1"
    ):
        sparse_pca(lambda: iter([bad[:7], sp.csr_array(bad[7:])]), n_nonzero_coefs=2)


def refilled(kind=np.asarray):
    """Return a function whose blocks are one array, filled again for each."""

    def blocks():
        buffer = np.empty((5, 5))
        for start in range(0, 20, 5):
            buffer[:] = X[start : start + 5]
            yield kind(buffer)

    return blocks


def as_csr(buffer):
    made = sp.csr_array((5, 5))
    made.data, made.indices = buffer.ravel(), np.tile(np.arange(5), 5)
    made.indptr = np.arange(0, 26, 5)
    return made


def as_frame(buffer):
    return pd.DataFrame(buffer, columns=list("abcde"), copy=False)


@pytest.mark.parametrize("kind", [np.asarray, as_csr, as_frame])
@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_blocks_that_are_one_array_filled_again_are_held_as_they_were(kind, arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    source = refilled(kind)
    for limit in (1, 10**6):
        result = sparse_pca(source, n_nonzero_coefs=2, memory_limit=limit)
        assert result.value == pytest.approx(sparse_pca(X, n_nonzero_coefs=2).value, rel=1e-12)
        assert verify(result, X, arithmetic=arithmetic).verdict == "proved"
        assert verify(result, source, arithmetic=arithmetic).verdict == "proved"
    gathered = as_rows(source).gather().X
    np.testing.assert_array_equal(gathered.toarray() if sp.issparse(gathered) else gathered, X)


def test_blocks_with_gaps_that_are_one_array_filled_again_are_held_as_they_were():
    gaps = X.copy()
    gaps[3, 1] = np.nan

    def blocks():
        buffer = np.empty((5, 5))
        for start in range(0, 20, 5):
            buffer[:] = gaps[start : start + 5]
            yield buffer

    result = sparse_pca(blocks, n_nonzero_coefs=2, missing="mean")
    assert verify(result, gaps).verdict == "proved"
    assert verify(result, blocks).verdict == "proved"


def test_identifiers_are_told_in_frames_over_one_array_that_is_filled_again():
    def blocks():
        buffer = np.empty((5, 2), dtype=np.int64)
        for start in range(0, 20, 5):
            buffer[:, 0], buffer[:, 1] = np.arange(start, start + 5), np.arange(5) // 2
            yield pd.DataFrame(buffer, columns=["id", "count"], copy=False)

    rows = as_rows(blocks)
    assert rows.n_features == 1
    assert "'id' (identifier)" in rows.notes[0]


def test_blocks_of_a_list_are_not_copied_one_by_one():
    parts = [X[:7], X[7:]]
    rows = as_rows(parts)
    assert all(rows.lasting(block) is block for block in rows.blocks())


def test_a_matrix_by_columns_is_read_in_pieces_where_no_copy_by_rows_fits(monkeypatch):
    monkeypatch.setattr("sparcipal.data.rows.PIECE", 500)
    X = sp.random_array((90, 20), density=0.3, rng=np.random.default_rng(0), format="csc")
    rows = as_rows(X)
    assert len(list(rows.blocks())) == 1
    rows = as_rows(X).within(4000)
    blocks = list(rows.blocks())
    assert 4 <= len(blocks) <= 20
    assert all(block.data.nbytes + block.indices.nbytes <= 2000 for block in blocks)
    np.testing.assert_array_equal(sp.vstack(blocks).toarray(), X.toarray())
    by_columns, by_rows = (
        sparse_pca(matrix, n_components=2, n_nonzero_coefs=3, memory_limit=4000)
        for matrix in (X, X.tocsr())
    )
    assert by_columns.value == pytest.approx(by_rows.value, rel=1e-12)
