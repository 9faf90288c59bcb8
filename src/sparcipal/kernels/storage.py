"""A place for compiled code where there is none: without one, numba refuses to load the kernels.

A package that cannot be written and a user without a home (a container, a service) leave numba
no folder. A temporary one serves this process, which then compiles anew.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile

import numba


def _probe():
    """Nothing; numba looks for a folder as soon as a function is to be cached."""


def ensure() -> None:
    """Give numba a temporary folder if it finds none for the functions of this package."""
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="sparcipal-")
        setattr(numba.config, "CACHE_DIR", folder)  # noqa: B010  (numba makes the name at run time)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


ensure()
