"""Batches that come once only are kept: what is more than a part of the limit in a file."""

from __future__ import annotations

import tempfile
import warnings

import numpy as np
import pytest

from sparcipal import read, sparse_pca
from sparcipal.data.files import once
from sparcipal.data.rows import memory_map

pa = pytest.importorskip("pyarrow")
X = np.random.default_rng(0).standard_normal((300, 6)) * np.geomspace(3, 1, 6)
LATE = [None] * 200 + [1.0, 2.0] * 50


def table(**more):
    words = pa.array(["a", "b", "c"] * 100).dictionary_encode()
    return pa.table({**{f"f{j}": X[:, j] for j in range(6)}, "words": words, **more})


def reader(**more):
    """A reader of batches that nothing else holds, with dictionaries that differ."""
    made = table(**more)
    parts = [made.slice(i, 50).combine_chunks().to_batches()[0] for i in range(0, 300, 50)]
    return pa.RecordBatchReader.from_batches(made.schema, iter([made.to_batches()[0][:0], *parts]))


@pytest.mark.parametrize("limit", ["1GiB", 4000])
@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_a_reader_has_the_answer_of_its_table(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked = {"n_nonzero_coefs": 2, "certify": False}
    found = sparse_pca(reader(), memory_limit=limit, **asked)
    whole = sparse_pca(table(), **asked)
    assert found.value == pytest.approx(whole.value, rel=1e-12)
    assert found.feature_names == whole.feature_names
    assert bool(found.certificate.screening) == (limit == 4000)
    assert not list(tmp_path.iterdir())


def test_what_is_more_than_a_part_of_the_limit_is_no_memory_of_arrow():
    made = table()
    size = made.nbytes
    before = pa.total_allocated_bytes()
    batches = made.to_batches(max_chunksize=10)
    held = once.kept(pa.RecordBatchReader.from_batches(made.schema, batches), once.PART * size)
    mapped = once.kept(pa.RecordBatchReader.from_batches(made.schema, batches), size)
    del made, batches
    assert held.n_samples == mapped.n_samples == 300
    for blocks in (held, mapped, mapped):
        assert pa.concat_tables(list(blocks())).equals(table())
    del held
    assert pa.total_allocated_bytes() < before


@pytest.mark.parametrize("missing", ["mean", "rows"])
def test_missing_entries_of_a_reader_are_treated_or_refused_with_the_size(missing):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = sparse_pca(reader(late=LATE), n_nonzero_coefs=2, certify=False, missing=missing)
    assert "'words' (text, 3 categories)" in str(told[0].message)
    assert found.feature_names[-1] == "late"
    needs = "missing=.* needs a table in memory, but the blocks .* memory_limit=4000"
    with pytest.raises(ValueError, match=needs):
        sparse_pca(reader(late=LATE), n_nonzero_coefs=2, missing=missing, memory_limit=4000)


def test_missing_may_be_given_where_nothing_of_a_reader_is_missing():
    asked = {"n_nonzero_coefs": 2, "certify": False}
    with pytest.warns(UserWarning, match="words"):
        found = sparse_pca(reader(), missing="mean", **asked)
    assert found.value == pytest.approx(sparse_pca(X, **asked).value, rel=1e-12)


def test_a_file_that_cannot_be_written_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"could not be kept in a temporary file .*TMPDIR"):
        sparse_pca(reader(), n_nonzero_coefs=2, memory_limit=4000)


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_read_maps_what_exceeds_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = read(reader(), memory_limit=4000)
    assert memory_map(found.X) is not None
    np.testing.assert_array_equal(found.X, X)
    assert memory_map(read(reader()).X) is None
