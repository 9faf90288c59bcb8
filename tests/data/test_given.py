"""`read` takes the blocks and scans that a fit takes, with the options of tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparcipal import read
from sparcipal.data.rows import memory_map

COUNTS = np.random.default_rng(0).poisson(3.0, (90, 4))
FRAME = pd.DataFrame(COUNTS, columns=[*"abcd"]).assign(
    who=[f"p{i}" for i in range(90)], group=["x", "y", "z"] * 30
)


def blocks():
    return (FRAME[i : i + 20] for i in range(0, 90, 20))


def partitioned():
    return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=3)


def relation():
    frame = FRAME
    found = pytest.importorskip("duckdb").connect().from_df(frame)
    return found


def dataset():
    datasets, pa = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow")
    return datasets.dataset(pa.Table.from_pandas(FRAME))


def scanned():
    return pytest.importorskip("polars").from_pandas(FRAME).lazy()


SOURCES = {
    "function": lambda: blocks,
    "list": lambda: [*blocks()],
    "scan": scanned,
    "relation": relation,
    "dataset": dataset,
    "batches": lambda: pytest.importorskip("pyarrow").Table.from_pandas(FRAME).to_batches(20),
    "dask": partitioned,
}


@pytest.mark.parametrize("limit", ["1GiB", 1000])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_blocks_are_read_with_the_options_of_tables(make, limit):
    found = read(make(), index="who", label="group", drop=["b"], memory_limit=limit)
    np.testing.assert_array_equal(found.X, COUNTS[:, [0, 2, 3]])
    assert found.feature_names == ("a", "c", "d")
    assert found.sample_names == tuple(FRAME["who"])
    assert found.labels == tuple(FRAME["group"])
    assert (memory_map(found.X) is None) == (limit == "1GiB")
    assert read(make(), columns=["c", "a"]).feature_names == ("a", "c")


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_what_is_set_aside_in_blocks_is_told(make):
    with pytest.warns(UserWarning, match=r"'who' .*'group'"):
        found = read(make())
    np.testing.assert_array_equal(found.X, COUNTS)
    assert len(found.notes) == 1


def test_arrays_and_whole_numbers_with_gaps_are_read():
    parts = [COUNTS[:50], COUNTS[50:].astype(float)]
    parts[1][3, 2] = np.nan
    found = read(lambda: iter(parts), feature_names=[*"abcd"])
    np.testing.assert_array_equal(found.X, np.concatenate(parts))
    assert found.feature_names == tuple("abcd")
    refilled = np.empty((30, 4))

    def same_array():
        for i in range(0, 90, 30):
            refilled[:] = COUNTS[i : i + 30]
            yield refilled

    np.testing.assert_array_equal(read(same_array).X, COUNTS)


def test_what_cannot_be_read_in_blocks_says_why():
    with pytest.raises(ValueError, match=r"one_hot .* one frame"):
        read(blocks, one_hot=["group"])
    with pytest.raises(TypeError, match=r"read once only.*pass a function"):
        read(blocks())
    with pytest.raises(ValueError, match=r"columns: .* arrays"):
        read(lambda: iter([COUNTS]), columns=["a"])
    with pytest.raises(ValueError, match="no row"):
        read(lambda: iter([]))
    with pytest.raises(ValueError, match="format: only for a file"):
        read(blocks, format="csv")
    mixed = [FRAME.assign(e=1), FRAME.assign(e="text")]
    with pytest.raises(ValueError, match="'e'"):
        read(mixed)
    with pytest.warns(UserWarning, match="set aside"):
        assert read(mixed, drop="e").shape == (180, 4)
