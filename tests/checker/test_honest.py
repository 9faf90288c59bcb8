"""No honest result is refused: whatever the table, its container, its scale and its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets

from sparcipal import Result, read, sparse_pca, verify
from tests.support.honest import honest, refusal

SETS = ("wine", "breast_cancer", "iris", "diabetes", "digits")


def proved(result: Result, X: Any, **kwargs: Any) -> None:
    verdict = verify(result, X, **kwargs)
    assert verdict.verdict == "proved", verdict.reason


def noisy(n: int, p: int, seed: int = 0, rank: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = 0.7 * rng.standard_normal((n, p))
    return X + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) / np.sqrt(rank)


LAZY = {"method_options": {"effort": 0}}  # of the search: the checker is on trial


# --- tables as they come ---


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("prepared", ["raw", "centred", "standardised"])
@pytest.mark.parametrize("scale", [False, True])
def test_verify_accepts_results_of_scikit_learn_tables(name, prepared, scale):
    X = getattr(datasets, f"load_{name}")().data
    if prepared != "raw":
        X = X - X.mean(axis=0)
    if prepared == "standardised":
        spread = X.std(axis=0)
        X = X / np.where(spread > 0, spread, 1.0)
    for k, certify in ((1, "fast"), (2, False)):
        asked = {"n_components": k, "n_nonzero_coefs": 2, "certify": certify, "scale": scale}
        result = sparse_pca(X, **asked, **LAZY)
        proved(Result.from_json(result.to_json()), X)


@pytest.mark.parametrize("seed", range(6))
def test_verify_accepts_results_of_centred_noise(seed):
    X = noisy(50, 8, seed)
    X -= X.mean(axis=0)
    proved(sparse_pca(X, n_nonzero_coefs=3), X)
    proved(sparse_pca(sp.csr_array(X), n_nonzero_coefs=3), X)


@pytest.mark.parametrize("scale", [False, True])
def test_verify_accepts_columns_of_very_different_sizes(scale):
    X = noisy(40, 6) * 10.0 ** np.arange(-9, 9, 3) + 10.0 ** np.arange(9, -9, -3)
    proved(sparse_pca(X, n_nonzero_coefs=2, scale=scale), X)


# --- containers of the same numbers ---


def containers(X: np.ndarray, folder: Any) -> dict[str, Any]:
    dask = pytest.importorskip("dask.array")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    names = ["X", "feature_names", "columns", "blocks", "shape", "values"][: X.shape[1]]
    columns = {name: X[:, j] for j, name in enumerate(names)}
    np.save(folder / "X.npy", X)
    return {
        "ndarray": X,
        "Fortran order": np.asfortranarray(X),
        "list": X.tolist(),
        "CSR": sp.csr_array(X),
        "CSC": sp.csc_array(X),
        "COO": sp.coo_array(X),
        "CSR matrix": sp.csr_matrix(X),
        "memmap": np.load(folder / "X.npy", mmap_mode="r"),
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "pyarrow": pyarrow.table(columns),
        "Table": read(X, feature_names=names),
        "Table of CSR": read(sp.csr_array(X)),
        "blocks": lambda: iter([X[:7], X[7:30], X[30:]]),
        "blocks of CSR": lambda: iter([sp.csr_array(X[:7]), X[7:]]),
        "dask": dask.from_array(X, chunks=(16, X.shape[1])),
        "dask frame": pytest.importorskip("dask.dataframe").from_pandas(
            pandas.DataFrame(columns), npartitions=3
        ),
    }


@pytest.mark.parametrize(
    ("kind", "memory"),
    [("float64", 1 << 30), ("float64", 1), ("float32", 1), ("int64", 1 << 30), ("uint8", 1)],
)
def test_verify_accepts_every_container_of_the_same_numbers(kind, memory, tmp_path):
    X = (noisy(60, 6, 1) * 20 + 90).round(1).astype(kind)
    every = containers(X, tmp_path)
    for name, held in every.items():
        result = sparse_pca(held, n_nonzero_coefs=2, memory_limit=memory)
        verdict = verify(result, held)
        assert verdict, f"{name}: {verdict.reason}"
        verdict = verify(result, X)
        assert verdict, f"{name}, against the array: {verdict.reason}"
    plain = sparse_pca(X, n_nonzero_coefs=2, memory_limit=memory)
    for name, held in every.items():
        verdict = verify(plain, held)
        assert verdict, f"the array, against {name}: {verdict.reason}"


def test_numbered_columns_name_nothing():
    pandas = pytest.importorskip("pandas")
    X = noisy(30, 5)
    named = pandas.DataFrame(X, columns=list("abcde"))
    proved(sparse_pca(pandas.DataFrame(X), n_nonzero_coefs=2), pandas.DataFrame(X))
    proved(sparse_pca(X, n_nonzero_coefs=2), named)
    proved(sparse_pca(named, n_nonzero_coefs=2), X)


def test_verify_accepts_results_of_an_annotated_table():
    anndata = pytest.importorskip("anndata")
    X = noisy(30, 5)
    held = anndata.AnnData(X)
    proved(sparse_pca(held, n_nonzero_coefs=2), held)


# --- margins ---


@pytest.mark.parametrize("method", ["spannogram", "bipartite", "auto"])
@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize("scale", [False, True])
def test_verify_accepts_sketches_of_standardised_data(method, n, scale):
    X = noisy(n, 16, n)
    for k in (1, 2):
        result = (
            sparse_pca(X, n_components=k, n_nonzero_coefs=4, method=method, rank=3, scale=scale)
            if method != "auto"
            else sparse_pca(X, n_components=k, n_nonzero_coefs=5, scale=scale, **LAZY)
        )
        proved(result, X)


@pytest.mark.parametrize("p", [3100])
def test_verify_accepts_results_with_more_features_than_samples(p):
    X = noisy(40, p)
    proved(sparse_pca(X, n_nonzero_coefs=4), X)


@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("scale", [False, True])
def test_verify_accepts_a_streamed_sketch_with_an_array(rank, scale):
    X = noisy(300, 30, rank)
    blocks = lambda: iter([X[:100], X[100:]])  # noqa: E731
    result = sparse_pca(
        blocks, n_nonzero_coefs=4, method="spannogram", rank=rank, memory_limit=1, scale=scale
    )
    proved(result, X)
    proved(result, blocks)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("memory", [1 << 30, 1])
@pytest.mark.parametrize("sparse", [False, True])
def test_verify_accepts_weights_of_very_different_sizes(center, scale, memory, sparse):
    least = 1e-12 if center == scale else 1e-40
    rng = np.random.default_rng(3)
    X = noisy(50, 7)
    if sparse:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X + 3.0, 0.0))
    weights = np.exp(rng.uniform(np.log(least), 0.0, 50))
    settings = {"n_nonzero_coefs": 3, "center": center, "scale": scale, "memory_limit": memory}
    result = sparse_pca(X, sample_weight=weights, **settings)
    proved(result, X, sample_weight=weights)
    weights[:48] *= least
    result = sparse_pca(X, sample_weight=weights, **settings)
    proved(result, X, sample_weight=weights)


@pytest.mark.parametrize("least", [1e-10, 1e-17, 1e-30])
@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_a_column_that_varies_in_a_row_of_tiny_weight_is_standardised(least, memory):
    X = noisy(40, 6)
    X[:, 2] = 1.0
    X[7, 2] = 0.0
    weights = np.ones(40)
    weights[7] = least
    deviation = np.sqrt(least / (39 + least) * (39 / (39 + least)))
    for held in (X, sp.csr_array(X)):
        result = sparse_pca(
            held, n_nonzero_coefs=2, scale=True, sample_weight=weights, memory_limit=memory
        )
        assert result.scale[2] == pytest.approx(deviation, rel=1e-6)
        assert result.bound < 10
        proved(result, held, sample_weight=weights)


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_a_constant_column_is_scaled_by_one(memory):
    X = noisy(40, 6)
    X[:, 2] = 5.0
    X[:, 4] = 0.0
    for held in (X, sp.csr_array(X)):
        result = sparse_pca(held, n_nonzero_coefs=2, scale=True, memory_limit=memory)
        assert result.scale[2] == result.scale[4] == 1.0
        proved(result, held)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_total_variance_of_sparse_streams_is_exact_beside_large_means(mixed, center):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) * 0.4 + 1e8
    X[:, 5] += rng.standard_normal(60)
    blocks = [sp.csr_array(X[:20]), X[20:] if mixed else sp.csr_array(X[20:])]
    result = sparse_pca(
        lambda: iter(blocks), n_nonzero_coefs=1, memory_limit=1, center=center, certify=False
    )
    exact = float(X.var(axis=0).sum()) if center else float((X * X).mean(axis=0).sum())
    assert result.total_variance == pytest.approx(exact, rel=1e-6)
    proved(result, X)
    proved(result, lambda: iter(blocks))


# --- saved and loaded ---


def test_verify_accepts_results_saved_and_loaded(tmp_path):
    X = noisy(80, 12)
    for settings in ({"scale": True}, {"n_components": 2}, {"supports": "free", "n_components": 2}):
        result = sparse_pca(X, n_nonzero_coefs=3, **settings, **LAZY)
        result.save(tmp_path / "result.json")
        proved(Result.load(tmp_path / "result.json"), X)


# --- passes over the rows ---


@pytest.mark.parametrize(("memory", "most"), [(1 << 30, 1), (1, 2)])
def test_a_function_of_blocks_is_called_no_more_often_than_needed(memory, most):
    X = noisy(60, 8)
    calls = []

    def blocks():
        calls.append(1)
        return iter([X[:20], X[20:]])

    result = sparse_pca(blocks, n_nonzero_coefs=2, memory_limit=memory)
    calls.clear()
    proved(result, blocks)
    assert len(calls) <= most


# --- and everything else, by chance ---


@pytest.mark.parametrize("seed", range(6))
def test_no_honest_result_of_a_small_campaign_is_refused(seed, tmp_path):
    """The same cases as `make honest`; the large ones are left to that."""
    case = honest(seed)
    if not case.size.startswith("wide"):
        assert refusal(case, tmp_path) in ("", None), str(case)


@pytest.mark.parametrize("big", [1e20, 1e85, 1e149])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_huge_constant_column_changes_nothing(big, sparse):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    X[:, 1:4] += 2 * rng.standard_normal((30, 1))
    X[:, 0] = big
    result = sparse_pca(sp.csr_array(X) if sparse else X, n_nonzero_coefs=2)
    without = sparse_pca(X[:, 1:], n_nonzero_coefs=2)
    assert result.value == pytest.approx(without.value, rel=1e-12)
    assert result.certificate.gap <= 1e-9
    assert verify(result, X)
    assert verify(result, X, arithmetic="exact")
