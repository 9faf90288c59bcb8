"""Where the project and the public data sets lie."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def copied_package(folder: Path) -> Path:
    """A copy of the package to change, with its compiled kernels."""
    return shutil.copytree(ROOT / "src" / "sparcipal", folder / "sparcipal")


def data_dir() -> Path:
    """The folder of public data sets; the test that asks skips when there is none."""
    folder = Path(os.environ.get("SPARCIPAL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; name their folder in SPARCIPAL_DATA")
    return folder


def data_file(name: str) -> Path:
    """One public data set; the test that asks skips when it is absent."""
    path = data_dir() / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path
