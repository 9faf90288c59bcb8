"""Columns of frames in blocks are the same features on every road and at every limit."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import read, sparse_pca
from sparcipal.data import arrow, columns, frames, layout
from sparcipal.data.frames import part_of
from sparcipal.data.layout import known_columns
from sparcipal.data.sources import as_rows

pandas = pytest.importorskip("pandas")
ROWS = 90
WAVES = [*range(30)] * 3
IDS = {
    "waves": (WAVES, False),
    "in order": ([*range(ROWS)], True),
    "in no order": (np.random.default_rng(1).permutation(ROWS).tolist(), True),
    "once again at the end": ([*range(ROWS - 1), 0], False),
}


def frame_of(ids):
    X = np.random.default_rng(0).poisson(9, (ROWS, 3))
    return pandas.DataFrame(X, columns=["a", "b", "c"]).assign(id=ids, e=np.nan)


def roads(frame, folder):
    """Yield the same rows as every kind of data that has names."""
    yield "frame", frame
    yield "blocks", lambda: (frame[i : i + 20] for i in range(0, ROWS, 20))
    path = folder / "x.parquet"
    arrow_ = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = arrow_.Table.from_pandas(frame, preserve_index=False)
    pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=25)
    yield "dataset", dataset.dataset(path)
    yield "reader", table.to_reader(20)
    yield "scan", pytest.importorskip("polars").scan_parquet(path)
    dask = pytest.importorskip("dask.dataframe")
    yield "dask", dask.from_pandas(frame, npartitions=5)
    yield "file", path


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
@pytest.mark.parametrize("ids", IDS)
def test_an_identifier_is_one_on_every_road(ids, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "BYTES", 800)  # some rows in each block
    entries, identifies = IDS[ids]
    expected = ("a", "b", "c") if identifies else ("a", "b", "c", "id")
    for limit in ("1GiB", 2000):
        for road, data in roads(frame_of(entries), tmp_path):
            X = read(data, memory_limit=limit) if road == "file" else data
            made = sparse_pca(X, n_nonzero_coefs=2, memory_limit=limit, certify=False)
            assert made.feature_names == expected, (road, limit)
            told = X.notes if road == "file" else made.info["notes"]
            assert ("'id' (identifier)" in str(told)) == identifies, (road, limit)
            assert "'e' (empty)" in str(told), (road, limit)


def test_identifiers_are_told_by_so_many_rows_whatever_the_blocks(monkeypatch):
    for module in (columns, frames, layout):
        monkeypatch.setattr(module, "DIFFER", 40)
    first_again_in = {35: False, 40: True, 60: True}
    for row, identifies in first_again_in.items():
        frame = frame_of([0 if i == row else i for i in range(ROWS)])
        whole = frames.from_frame(frame).features
        for step in (7, 30, ROWS):
            rows = as_rows(lambda f=frame, s=step: (f[i : i + s] for i in range(0, ROWS, s)))
            assert rows.feature_names == whole
        assert ("id" not in whole) == identifies


def test_no_more_rows_are_looked_at_than_needed():
    frame = frame_of(WAVES).drop(columns="e")
    asked = []

    def blocks(names):
        for start in range(0, ROWS, 10):
            asked.append((start, *names))
            yield part_of(frame[start : start + 10], names)

    assert known_columns(part_of(frame[:10]), blocks) == {}
    assert asked[0] == (0, "id")
    assert asked[-1][0] <= 60
    asked.clear()
    assert known_columns(part_of(frame), blocks) == {}
    assert not asked
