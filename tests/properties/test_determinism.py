"""The same input and seed give the same bytes: for every n_jobs, run, process and container.

Chunks and dask: tests/data/test_dask.py. Dense against sparse: the sums are taken in another
order, so that last digits differ and what is proved stays true of both.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, verify

rng = np.random.default_rng(0)
X = rng.poisson(0.7, (50, 16)).astype(float)

QUESTIONS = [
    {"n_nonzero_coefs": 4},
    {"n_components": 3, "n_nonzero_coefs": [4, 3, 2]},
    {"n_components": 2, "n_nonzero_coefs": 4, "supports": "free"},
    {"n_nonzero_coefs": 4, "nonnegative": True, "certify": "full"},
    {"n_components": 2, "n_nonzero_coefs": 3, "method": "bipartite", "rank": 3},
]


QUICK = {"effort": 0}  # of the search, which sees a covariance and no container


def quick(question: dict) -> dict:
    proof = {"certify": False} if "supports" in question else {}  # it sees none either
    return question if "method" in question else {**question, **proof, "method_options": QUICK}


# overlapping supports: tests/test_fit.py
@pytest.mark.parametrize("question", [asked for asked in QUESTIONS if "supports" not in asked])
def test_answers_do_not_depend_on_jobs_or_runs(question):
    first = sparse_pca(X, **question).to_json()
    for jobs in (3,):
        assert sparse_pca(X, n_jobs=jobs, **question).to_json() == first


@pytest.mark.parametrize("question", [quick(asked) for asked in QUESTIONS])
def test_answers_do_not_depend_on_containers(question):
    first = sparse_pca(X, **question).to_json()
    for container in (np.asfortranarray, lambda x: x.astype(np.float32), lambda x: x.tolist()):
        # small integers are exact in every type
        assert sparse_pca(container(X), **question).to_json() == first
    sparse = sparse_pca(sp.csr_array(X), **question).to_json()
    for container in (sp.csc_array, sp.coo_array):
        assert sparse_pca(container(X), **question).to_json() == sparse


@pytest.mark.parametrize("question", [quick(asked) for asked in QUESTIONS])
def test_dense_and_sparse_agree_to_rounding(question):
    dense, sparse = sparse_pca(X, **question), sparse_pca(sp.csr_array(X), **question)
    slack = dense.certificate.rounding + sparse.certificate.rounding + 1e-12 * dense.value
    rel = 1e-9
    if question.get("supports") == "free":  # searches on rounded numbers may end elsewhere
        slack, rel = 1e-3 * dense.value, 1e-3
    assert abs(dense.value - sparse.value) <= slack
    assert dense.bound == pytest.approx(sparse.bound, rel=rel)
    for result in (dense, sparse):
        assert verify(result, X)
        assert verify(result, sp.csr_array(X))


@pytest.mark.processes
def test_answers_are_the_same_in_two_processes():
    code = """
import numpy as np, hashlib
from sparcipal import sparse_pca
X = np.random.default_rng(3).standard_normal((30, 8))
text = sparse_pca(X, n_components=2, n_nonzero_coefs=3).to_json()
print(hashlib.sha256(text.encode()).hexdigest())
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": jobs},
        ).stdout
        for seed, jobs in (("1", "1"), ("2", "2"))
    }
    assert len(found) == 1
    assert len(found.pop()) == 65
