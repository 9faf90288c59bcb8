"""NumPy's .npy: the array stays on disk, read-only, and is paged in as needed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .bytes import Path_
from .reader import Parsed, Reader


def read_npy(source: Path_, names: Any) -> Parsed:
    try:
        return Parsed(np.load(os.fspath(source), mmap_mode="r", allow_pickle=False))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{source}: not an array of numbers: {error}") from error


READER = Reader("npy", (".npy",), read_npy, from_pipe=False, worth_caching=False)
