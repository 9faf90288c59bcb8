"""Shared by all tests: where real data lie, and how golden files are renewed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]

# Two test processes on two cores: each keeps its linear algebra to one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Plugins have loaded NumPy by now, so that the variables reach only processes started by tests.
threadpool_limits(1)
# A shell starts its background jobs with Ctrl-C ignored; tests of it are to see it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files of tests/golden with what the code prints now",
    )


@pytest.fixture(name="data_dir")
def _data_dir() -> Path:
    return data_dir()


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compare a text with tests/golden/<name>; `pytest --update-golden` rewrites the file."""

    def compare(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(text + "\n", encoding="utf-8")
        assert path.exists(), (
            f"{path} is missing; run pytest --update-golden and read what it wrote"
        )
        assert text + "\n" == path.read_text(encoding="utf-8")

    return compare
