"""The recipe of the documentation for Spark gives the certificate of the rows, in local mode."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, Screened, sparse_pca
from tests.support.places import ROOT


def recipe() -> str:
    page = (ROOT / "docs" / "scaling.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page)
    (found,) = [block for block in blocks if "mapPartitions" in block]
    quick = textwrap.dedent(found).replace("coefs=10)", "coefs=10, certify=False)")
    assert "certify=False" in quick
    return quick


class Partitions:
    """The two methods of an RDD that the recipe uses, without Spark."""

    def __init__(self, parts):
        self.parts = parts

    def mapPartitions(self, function):
        return Partitions([made for part in self.parts for made in function(part)])

    def treeReduce(self, merge):
        total, *others = self.parts
        for other in others:
            total = merge(total, other)
        return total


def corpus():
    rng = np.random.default_rng(0)
    X = rng.poisson(3 / np.arange(1, 1501) ** 0.9, size=(600, 1500))
    X[:, :6] += rng.poisson(1.0, size=(600, 1))
    return X


def check(names, X):
    result = names["result"]
    moments = Moments(1500).add(X)
    screened = Screened.of(moments, moments.gram(moments.screen(1000)).add(X))
    expected = sparse_pca(covariance=screened, n_nonzero_coefs=10, certify=False)
    assert result.value == expected.value
    assert result.certificate.bound == expected.certificate.bound
    assert result.certificate.screening == expected.certificate.screening
    assert result.certificate.screening["kept"] == 1000


def test_spark_recipe_gives_the_same_sums_without_spark():
    X = corpus()
    parts = [[sp.csr_array(X[:200]), X[200:300]], [X[300:]], []]
    names = {"blocks": Partitions(parts), "n_features": 1500}
    exec(recipe(), names)
    check(names, X)


@pytest.mark.processes
def test_spark_recipe_gives_the_same_sums_on_spark(monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java for Spark")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        X = corpus()
        cut = [sp.csr_array(X[start : start + 100]) for start in range(0, 600, 100)]
        names = {"blocks": spark.sparkContext.parallelize(cut, 3), "n_features": 1500}
        exec(recipe(), names)
        check(names, X)
    finally:
        spark.stop()
