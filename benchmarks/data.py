"""The data sets of the benchmarks, from the folder named by SPARCIPAL_DATA (default:
../shared/data)."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(
    os.environ.get("SPARCIPAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def path(name: str) -> Path:
    """The file, or an error that says which variable to set."""
    file = FOLDER / name
    if not file.exists():
        raise SystemExit(f"{file} is absent; name the folder of the data sets in SPARCIPAL_DATA")
    return file
