"""Lazy data without a cluster: the same answers, or why there is none."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import Moments, SparsePCA, sparse_pca
from sparcipal.data.sources import as_rows
from sparcipal.problem.monitor import Monitor

dask = pytest.importorskip("dask", reason="dask is not installed")


da = pytest.importorskip("dask.array", reason="dask.array is not installed")


X = np.random.default_rng(0).poisson(3.0, (40, 6)).astype(float)


QUICK = {"n_nonzero_coefs": 2, "certify": False, "method": "threshold"}


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def cuts(table: np.ndarray, size: int) -> list:
    return [dask.delayed(table[i : i + size]) for i in range(0, len(table), size)]


def test_delayed_blocks_come_one_by_one_without_empty_ones():
    """Those without rows are passed over."""
    rows = as_rows([*cuts(X, 15), dask.delayed(X[:0])])
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks())), X)


def test_fit_takes_the_width_from_a_first_block_without_rows():
    expected = sparse_pca(X, **QUICK)
    found = sparse_pca([dask.delayed(X[:0]), *cuts(X, 15)], **QUICK)
    assert found.value == expected.value
    with pytest.raises(ValueError, match="block 0 of X"):
        sparse_pca([dask.delayed(np.full((3, 6), "a")), *cuts(X, 15)], **QUICK)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: [dask.delayed(X[:0]), dask.delayed(X[:0])], "all 2 blocks of X are empty"),
        (lambda: da.from_array(X, chunks=(15, -1))[:0], "all 1 blocks of X are empty"),
        (
            lambda: da.from_array(X, chunks=(15, -1)).map_blocks(
                lambda block: block[:-1], dtype=float
            ),
            "block 0 holds 14 rows now, but held 15 before",
        ),
        (lambda: da.from_array(X[0], chunks=3), "X has 1 dimensions"),
        (lambda: da.from_array(X.reshape(40, 3, 2), chunks=20), "X has 3 dimensions"),
    ],
)
def test_fit_refuses_lazy_data_without_rows_or_columns(source, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(source(), **QUICK)


def test_fit_and_transform_take_arrays_of_unknown_width():
    """A mask of columns leaves their number open until it is computed."""
    lazy = da.from_array(X, chunks=(15, 6))
    some = lazy[:, da.from_array(np.array([True, True, False, True, True, True]), chunks=6)]
    assert np.isnan(some.shape[1])
    kept = X[:, [0, 1, 3, 4, 5]]
    assert sparse_pca(some, **QUICK).value == sparse_pca(kept, **QUICK).value
    model = SparsePCA(1, 2, certify=False).fit(kept)
    np.testing.assert_allclose(model.transform(some).compute(), model.transform(kept))
    with pytest.raises(ValueError, match="5 columns instead of 6"):
        SparsePCA(1, 2, certify=False).fit(X).transform(some).compute()


def test_transform_of_delayed_blocks_is_that_of_the_array():
    model = SparsePCA(1, 2, certify=False).fit(X)
    expected = model.transform(X)
    for source in (cuts(X, 15), dask.delayed(X)):
        lazy = model.transform(source)
        np.testing.assert_allclose(np.asarray(lazy.compute()), expected)
    with pytest.raises(ValueError, match="block 1 of X has 5 columns instead of 6"):
        model.transform([dask.delayed(X[:9]), dask.delayed(X[9:, :5])]).compute()


def test_fit_refuses_delayed_blocks_whose_names_differ():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(X[:20], columns=list("abcdef"))]
    frames.append(pandas.DataFrame(X[20:], columns=list("abcdeg")))
    with pytest.raises(ValueError, match=r"block 1 of X: it lacks .* and has"):
        sparse_pca([dask.delayed(frame) for frame in frames], **QUICK)


def test_data_in_memory_are_solved_on_workers_inside_the_dask_backend(monkeypatch):
    from sparcipal.data import inputs
    from sparcipal.numerics import threads

    class DaskDistributedBackend:
        """Only its name is looked at before work is handed out."""

    monkeypatch.setattr(threads, "_BACKENDS", {})
    door = inputs.Door(1 << 20, Monitor())
    inputs.resolved(np.eye(3), door=door)
    assert not threads._BACKENDS
    monkeypatch.setattr(inputs, "active_backend", DaskDistributedBackend)
    inputs.resolved(np.eye(3), door=door)
    assert "DaskDistributedBackend" in threads._BACKENDS


def test_blocks_of_one_task_are_made_by_one_run_of_dask(monkeypatch):
    runs, get = [], dask.get
    monkeypatch.setattr(dask, "get", lambda *given: runs.append(given) or get(*given))
    rows = as_rows(da.from_array(X, chunks=(1, -1)) + 1)
    with dask.config.set(scheduler="threads"):
        assert rows.accumulate(Moments(6)).n_samples == 40
    assert len(runs) == 1
