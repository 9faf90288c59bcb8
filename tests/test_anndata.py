"""AnnData in, AnnData out, and through a file."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

anndata = pytest.importorskip("anndata")

from sparcipal import Result, SparsePCA, read, sparse_pca, verify
from sparcipal.anndata import spca
from tests.support.places import data_file


@pytest.fixture
def adata():
    rng = np.random.default_rng(2)
    counts = rng.poisson(rng.gamma(0.5, 2.0, size=(50, 12))).astype(np.float32)
    made = anndata.AnnData(sp.csr_matrix(counts))
    made.var_names = [f"GENE{i}" for i in range(12)]
    made.layers["log"] = sp.csr_matrix(np.log1p(counts))
    return made


def test_scores_loadings_and_certificate_are_kept(adata):
    assert spca(adata, n_comps=2, n_nonzero=3) is None
    expected = sparse_pca(adata.X, n_components=2, n_nonzero_coefs=3)
    np.testing.assert_allclose(adata.varm["sPCs"], expected.components.T)
    dense = adata.X.toarray()
    np.testing.assert_allclose(
        adata.obsm["X_spca"], (dense - dense.mean(axis=0)) @ expected.components.T, atol=1e-5
    )
    kept = adata.uns["spca"]
    np.testing.assert_allclose(kept["variance"], expected.variances)
    assert kept["certificate"]["bound"] >= kept["certificate"]["value"]
    assert Result.from_json(kept["result"]).names(0)[0].startswith("GENE")


def test_spca_takes_layer_key_and_copy(adata):
    changed = spca(adata, 1, 2, layer="log", key_added="few", copy=True)
    assert "few" not in adata.uns
    assert {"few"} <= set(changed.uns) & set(changed.obsm) & set(changed.varm)
    assert changed.uns["few"]["params"]["layer"] == "log"
    with pytest.raises(ValueError, match="layer='no' is not in this AnnData object"):
        spca(adata, layer="no")
    with pytest.raises(ValueError, match="adata must be an AnnData object"):
        spca(np.eye(3))


def test_spca_results_survive_an_h5ad_file(adata, tmp_path):
    spca(adata, n_comps=2, n_nonzero=3)
    adata.write_h5ad(tmp_path / "x.h5ad")
    back = anndata.read_h5ad(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(back.varm["sPCs"], adata.varm["sPCs"])
    np.testing.assert_array_equal(back.obsm["X_spca"], adata.obsm["X_spca"])
    assert back.uns["spca"]["certificate"]["status"] == adata.uns["spca"]["certificate"]["status"]
    assert Result.from_json(back.uns["spca"]["result"]).value == pytest.approx(
        adata.uns["spca"]["certificate"]["value"]
    )


def test_spca_answers_on_peripheral_blood_cells(tmp_path):
    X = sp.load_npz(data_file("pbmc3k_csr.npz"))
    genes = data_file("pbmc3k_genes.txt").read_text().split()
    few = np.argsort(-np.asarray(X.sum(axis=0)).ravel())[:300]
    adata = anndata.AnnData(sp.csr_matrix(X[:, few].astype(np.float32)))
    adata.var_names = [genes[i] for i in few]
    adata.var_names_make_unique()
    adata.X = adata.X.log1p()
    spca(adata, n_comps=3, n_nonzero=5, certify=False)
    adata.write_h5ad(tmp_path / "pbmc.h5ad")
    back = anndata.read_h5ad(tmp_path / "pbmc.h5ad")
    assert back.obsm["X_spca"].shape == (2700, 3)
    assert (np.count_nonzero(back.varm["sPCs"], axis=0) <= 5).all()


def test_highly_variable_genes_are_used_alone(adata):
    marked = np.arange(12) % 2 == 0
    adata.var["highly_variable"] = marked
    spca(adata, n_comps=2, n_nonzero=3)
    expected = sparse_pca(adata.X[:, marked], n_components=2, n_nonzero_coefs=3)
    np.testing.assert_allclose(adata.varm["sPCs"][marked], expected.components.T)
    assert not adata.varm["sPCs"][~marked].any()
    kept = adata.uns["spca"]
    np.testing.assert_allclose(kept["variance_ratio"], expected.variances / expected.total_variance)
    assert kept["params"]["mask_var"] == "highly_variable"
    spca(adata, n_comps=2, n_nonzero=3, mask_var=None, key_added="all")
    assert "mask_var" not in adata.uns["all"]["params"]
    spca(adata, n_comps=2, n_nonzero=3, mask_var=~marked, key_added="others")
    assert not adata.varm["others"][marked].any()
    with pytest.raises(ValueError, match="mask_var='no' is no column"):
        spca(adata, mask_var="no")
    with pytest.raises(ValueError, match="must hold 12 truth values"):
        spca(adata, mask_var=np.ones(3))
    with pytest.raises(ValueError, match="marks no gene"):
        spca(adata, mask_var=np.zeros(12, dtype=bool))


@pytest.mark.parametrize("dense", [False, True])
def test_estimator_and_checker_take_anndata_and_its_views(dense):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    import pandas as pd

    X = sp.random_array((40, 12), density=0.4, rng=np.random.default_rng(0), format="csr")
    genes = pd.DataFrame({"highly_variable": np.arange(12) < 6}, index=[f"g{i}" for i in range(12)])
    cells = anndata.AnnData(X.toarray() if dense else sp.csr_matrix(X), var=genes)
    with pytest.warns(UserWarning, match="all 12 genes used"):
        model = SparsePCA(1, 3, certify=False).fit(cells)
    np.testing.assert_allclose(model.transform(cells), model.transform(cells.to_df()), atol=1e-12)
    view = cells[:, cells.var.highly_variable]
    assert verify(sparse_pca(view.copy(), n_nonzero_coefs=3), view)


@pytest.mark.processes
def test_files_of_cells_use_the_marked_genes_and_label_rows(tmp_path):
    adata = anndata.AnnData(np.random.default_rng(0).poisson(3, (30, 8)).astype(float))
    adata.var["highly_variable"] = [True] * 5 + [False] * 3
    adata.obs["type"] = ["a", "b"] * 15
    adata.write_h5ad(tmp_path / "c.h5ad")
    with pytest.warns(UserWarning, match="5 of 8 genes used"):
        table = read(tmp_path / "c.h5ad", label="type")
    assert table.shape == (30, 5)
    assert table.labels[:2] == ("a", "b")
    assert read(tmp_path / "c.h5ad", mask_var=None).shape == (30, 8)
    with pytest.raises(ValueError, match="its columns: 'type'"):
        read(tmp_path / "c.h5ad", label="kind", mask_var=None)


def test_what_is_stored_can_be_verified_against_all_genes():
    adata = anndata.AnnData(np.random.default_rng(0).poisson(3, (30, 8)).astype(float))
    adata.var["highly_variable"] = [False] * 3 + [True] * 5
    spca(adata, n_comps=1, n_nonzero=2)
    assert verify(Result.from_json(adata.uns["spca"]["result"]), adata)
    with pytest.raises(TypeError, match="n_comps"):
        spca(adata, n_components=2)


def test_all_genes_are_used_with_a_word_where_some_are_marked(adata):
    adata.var["highly_variable"] = np.arange(12) < 7
    said = "all 12 genes used, not only the 7 marked 'highly_variable'"
    with pytest.warns(UserWarning, match=said):
        result = sparse_pca(adata, n_nonzero_coefs=2)
    assert result.n_features == 12
    assert said in str(result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        marked = sparse_pca(adata[:, adata.var["highly_variable"]], n_nonzero_coefs=2)
        result.transform(adata)
    assert marked.n_features == 7
    with pytest.warns(UserWarning, match=said):
        SparsePCA(1, 2).fit(adata)
