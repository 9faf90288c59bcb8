"""The command doctor when something is broken."""

from __future__ import annotations

import importlib
from pathlib import Path

from sparcipal import kernels

SOURCES = Path(kernels.__file__).parent


def test_doctor_reports_what_is_broken(monkeypatch):
    doctor = importlib.import_module("sparcipal.cli.doctor")
    assert doctor._version("no-such-package") is None

    def broken(*arguments, **keywords):
        raise RuntimeError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr(doctor.importlib, "import_module", broken)
        first = min(path.stem for path in SOURCES.glob("[a-z]*.py"))
        assert doctor._kernels() == (f"BROKEN: {first}: out of order", False)
    monkeypatch.setattr("sparcipal.fit.sparse_pca", broken)
    assert doctor._smoke() == ("BROKEN: out of order", False)
