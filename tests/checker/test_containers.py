"""`verify` reads what `sparse_pca` read: scans and pieces of frames, by the names of columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from sparcipal import sparse_pca, verify

N = 240


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6))
    X[:, :3] += rng.standard_normal((N, 1))
    found = pd.DataFrame(X, columns=[f"s{j}" for j in range(6)])
    found.insert(0, "time", pd.date_range("2020-01-01", periods=N, freq="h"))
    return found.assign(site=["a", "b"] * (N // 2))


def parts(columns=None):
    found = frame()
    order = list(found.columns) if columns is None else columns
    return lambda: (found[order].iloc[i : i + 100] for i in range(0, N, 100))


def folder(tmp_path) -> str:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for i in (0, 1):
        part = pa.Table.from_pandas(frame().iloc[i * 120 : i * 120 + 120], preserve_index=False)
        parquet.write_table(part, tmp_path / f"part{i}.parquet")
    return str(tmp_path)


def dataset(tmp_path):
    return pytest.importorskip("pyarrow.dataset").dataset(folder(tmp_path))


def lazy(tmp_path):
    return pytest.importorskip("polars").scan_parquet(folder(tmp_path) + "/*.parquet")


def relation(tmp_path):
    return pytest.importorskip("duckdb").sql(f"select * from '{folder(tmp_path)}/*.parquet'")


SOURCES = {
    "dataset": dataset,
    "batches": lambda tmp_path: dataset(tmp_path).to_batches,
    "lazy frame": lazy,
    "relation": relation,
    "function of frames": lambda tmp_path: parts(),
    "list of frames": lambda tmp_path: list(parts()()),
}


def fitted(X, **asked):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "set aside, not fitted")
        return sparse_pca(X, n_nonzero_coefs=2, certify=False, **asked)


@pytest.mark.parametrize("memory_limit", [1000, 2**30])
@pytest.mark.parametrize("kind", SOURCES)
def test_verify_reads_what_was_fitted(kind, memory_limit, tmp_path):
    source = SOURCES[kind](tmp_path)
    result = fitted(source, memory_limit=memory_limit)
    verdict = verify(result, source)
    assert verdict.verdict == "proved", verdict.reason
    assert "2 columns of X that the result does not name were set aside" in verdict.reason


def test_pieces_of_frames_are_matched_by_the_names_of_their_columns():
    result = fitted(parts())
    turned = ["site", "s5", "s4", "s3", "s2", "s1", "s0", "time"]
    assert verify(result, parts(turned))
    swapped = frame().rename(columns={"s0": "s5", "s5": "s0"})
    assert not verify(result, lambda: iter([swapped.iloc[:100], swapped.iloc[100:]]))


def sparse(column, fill=0.0):
    return pd.arrays.SparseArray(column, fill_value=fill)


def test_sparse_columns_beside_dense_ones_are_the_same_numbers():
    X = np.random.default_rng(0).poisson(0.7, (30, 3)).astype(float)
    mixed = pd.DataFrame({"a": sparse(X[:, 0]), "b": X[:, 1], "c": sparse(X[:, 2], fill=1.0)})
    result = sparse_pca(X, n_nonzero_coefs=2, feature_names=list("abc"))
    assert verify(result, mixed)
    mixed.loc[0, "b"] = 7.0
    assert verify(result, mixed).verdict == "refused"


def test_long_integers_of_a_sparse_column_are_refused_beside_fractions():
    whole = np.array([0, 2**53 + 1, 0, 5])
    frame = pd.DataFrame({"a": sparse(whole, fill=0), "b": sparse(np.array([0.5, 0.0, 1.0, 0.0]))})
    with pytest.raises(ValueError, match="beyond 2"):
        sparse_pca(frame, n_nonzero_coefs=1)
    result = sparse_pca(frame.sparse.to_coo(), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match="beyond 2"):
        verify(result, frame)
