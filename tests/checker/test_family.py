"""A bound is two files and two lines: everything else learns of it from the lists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparcipal.checker.budget import Refused
from sparcipal.checker.family import FAMILIES, families, family_of
from tests.support.places import ROOT, copied_package


def test_every_name_of_the_list_is_a_family_of_its_file():
    assert [family.name for family in families()] == list(FAMILIES)
    for name in ("magic", None, 3, ["trace"], "\x1b[2J"):
        with pytest.raises(Refused, match="no bound called"):
            family_of(name)


def test_families_say_what_they_cover():
    known = {family.name: family for family in families()}
    assert {n for n, f in known.items() if f.totals} == {
        *("trace", "eigenvalues", "gershgorin", "frobenius", "clip", "kyfan"),
    }
    assert {n for n, f in known.items() if "adjusted" in f.kinds} == {
        *("trace", "eigenvalues", "parts", "lowrank", "dspca-dual", "adjusted"),
    }
    assert {n for n, f in known.items() if "orthogonal" in f.kinds} == {
        *("trace", "eigenvalues", "parts", "lowrank", "dspca-dual", "kyfan", "orthogonal"),
    }
    assert {n for n, f in known.items() if "common" in f.kinds} == {
        *("trace", "eigenvalues", "parts", "lowrank", "dspca-dual", "common"),
    }
    assert {n for n, f in known.items() if not f.needs_data} == {
        *("trace", "eigenvalues", "gershgorin", "enumeration", "common"),
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package with the example of CONTRIBUTING.md added to it."""
    folder = tmp_path_factory.mktemp("package")
    package = copied_package(folder)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a bound")[1]
    solver, checker = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[:2]
    (package / "bounds" / "level.py").write_text(solver, encoding="utf-8")
    (package / "checker" / "level.py").write_text(checker, encoding="utf-8")
    for file, before, line in (
        ("bounds/strategy.py", '    "cheap.eigenvalue_bound",\n', '    "level.level_bound",\n'),
        ("checker/family.py", '    "enumeration": "enumeration",\n', '    "level": "level",\n'),
    ):
        assert line.strip() in text
        old = (package / file).read_text(encoding="utf-8")
        assert old.count(before) == 1
        (package / file).write_text(old.replace(before, before + line), encoding="utf-8")
    return folder


PROGRAM = """
import json
import numpy as np
from dataclasses import replace
from sparcipal import Result, sparse_pca, verify

X = np.random.default_rng(0).standard_normal((40, 9)) * np.geomspace(1, 3, 9)
verdicts, bounds = [], []
for more in ({}, {"n_components": 2}, {"n_components": 2, "supports": "free"}, {"scale": True},
             {"n_components": 2, "n_nonzero_coefs": {"total": 5}}, {"nonnegative": True}):
    result = sparse_pca(X, **{"n_nonzero_coefs": 3, **more})
    saved = Result.from_json(result.to_json())
    verdicts.append(verify(saved, X).verdict)
    bounds.append([b.name for b in saved.certificate.bounds])
forged = []
result = sparse_pca(X, n_nonzero_coefs=3)
for wrong in ({"c": -1.0}, {"c": float("nan")}, {"c": 1}, {"c": "x"}, {}, {"c": 1.0, "d": 2.0}):
    changed = tuple(replace(b, data=wrong) if b.name == "level" else b
                    for b in result.certificate.bounds)
    certificate = replace(result.certificate, bounds=changed)
    verdict = verify(replace(result, certificate=certificate), X)
    forged.append([verdict.verdict, verdict.reason])
lower = tuple(replace(b, value=0.999 * b.value) if b.name == "level" else b
              for b in result.certificate.bounds)
lower = tuple(sorted(lower, key=lambda b: b.value))
certificate = replace(result.certificate, bounds=lower)
verdict = verify(replace(result, certificate=certificate), X)
forged.append([verdict.verdict, verdict.reason])
print(json.dumps({"verdicts": verdicts, "bounds": bounds, "forged": forged}))
"""


@pytest.mark.processes
def test_an_added_bound_is_in_certificates_and_rechecked(copy):
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdicts"] == ["proved"] * 6
    for number, names in enumerate(told["bounds"]):
        assert ("level" in names) == (number != 2), names
    assert all(verdict != "proved" for verdict, _ in told["forged"])
    assert "level.c" in told["forged"][0][1]
    assert "level" in told["forged"][-1][1]
