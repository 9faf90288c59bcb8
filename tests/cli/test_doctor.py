"""The command doctor when something is broken."""

from __future__ import annotations

import importlib


def test_doctor_reports_what_is_broken(monkeypatch):
    doctor = importlib.import_module("sparcipal.cli.doctor")
    assert doctor._version("no-such-package") is None

    def broken(*arguments, **keywords):
        raise RuntimeError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr(doctor.importlib, "import_module", broken)
        assert doctor._kernels() == ("BROKEN: dspca: out of order", False)
    monkeypatch.setattr("sparcipal.fit.sparse_pca", broken)
    assert doctor._smoke() == ("BROKEN: out of order", False)
