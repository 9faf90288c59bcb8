"""Many fits at once, from threads and processes, and many in a row: the same bytes, no growth.

SPARCIPAL_LOAD=200 runs as many at once; SPARCIPAL_FITS=1000 as many in a row.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from sparcipal import sparse_pca

AT_ONCE = int(os.environ.get("SPARCIPAL_LOAD", "12"))
IN_A_ROW = int(os.environ.get("SPARCIPAL_FITS", "60"))
X = np.random.default_rng(0).standard_normal((40, 10))


def fit(seed: int = 0) -> str:
    """One of several questions, as bytes."""
    options = (
        {"n_nonzero_coefs": 3},
        {"n_components": 2, "n_nonzero_coefs": 3, "n_jobs": 2},
        {"n_nonzero_coefs": 4, "nonnegative": True, "certify": "full"},
    )[seed % 3]
    return sparse_pca(X, **options).to_json()


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return [fit(seed) for seed in range(3)]


def same(found: list[str], expected: list[str]) -> None:
    assert len(found) == AT_ONCE
    for i, text in enumerate(found):
        assert text == expected[i % 3], f"fit {i} differs"


def test_fits_in_threads_at_once_are_all_proved(expected):
    with ThreadPoolExecutor(8) as pool:
        same(list(pool.map(fit, range(AT_ONCE))), expected)


@pytest.mark.processes
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fits_in_processes_at_once_are_all_proved(start, expected):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        same(list(pool.map(fit, range(AT_ONCE))), expected)


@pytest.mark.processes
def test_fits_under_joblib_are_all_proved(expected):
    from joblib import Parallel, delayed

    for backend in ("loky", "threading"):
        found = Parallel(n_jobs=2, backend=backend)(delayed(fit)(i) for i in range(AT_ONCE))
        same(found, expected)


def test_fits_on_dask_threads_are_all_proved(expected):
    dask = pytest.importorskip("dask")
    tasks = [dask.delayed(fit)(i) for i in range(AT_ONCE)]
    same(list(dask.compute(*tasks, scheduler="threads")), expected)


def _resident() -> int:
    """Bytes in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_fits():
    for seed in range(30):
        fit(3 * seed)
    gc.collect()
    before = _resident()
    for seed in range(IN_A_ROW):
        fit(3 * seed)
    gc.collect()
    assert _resident() - before < 24 << 20
