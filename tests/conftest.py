"""Shared by all tests: one thread of linear algebra each, golden files, processes run last."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tests.support.places import ROOT, data_dir

# Two test processes on two cores: each keeps its linear algebra to one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Plugins have loaded NumPy by now, so that the variables reach only processes started by tests.
threadpool_limits(1)
# A shell starts its background jobs with Ctrl-C ignored; tests of it are to see it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files of tests/golden with what the code prints now",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start processes are slow: they run last, so that quick ones fail first."""
    items.sort(key=lambda item: item.get_closest_marker("processes") is not None)


_started: list[str] = []  # processes of Python since the test began


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "os.fork" or (event == "subprocess.Popen" and arguments[0] == sys.executable):
        _started.append(event)


sys.addaudithook(_audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that starts a process of Python says so by its mark."""
    _started.clear()
    yield
    if _started and item.get_closest_marker("processes") is None:
        pytest.fail("starts a process: mark it with @pytest.mark.processes", pytrace=False)


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
