"""Gives numba a temporary cache folder if it has none, since it would refuse to load the kernels.

Numba finds no folder when the package is read-only and the user has no home (a container, a
service). This process then compiles the kernels anew.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile

import numba


def _probe():
    """Do nothing; numba looks for its folder when this function is to be cached."""


def ensure() -> None:
    """Give numba a temporary folder if it finds none for the functions of this package."""
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="sparcipal-")
        setattr(numba.config, "CACHE_DIR", folder)  # noqa: B010  (numba makes the name at run time)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


ensure()
