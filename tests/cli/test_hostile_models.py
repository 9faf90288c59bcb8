"""`show` and `verify` on files that nobody honest wrote: one sentence, no traceback, no waiting."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from sparcipal import Alternatives, Result, alternatives, sparse_pca
from sparcipal.cli import main
from sparcipal.problem.saving import LIMIT
from sparcipal.report import again
from sparcipal.report.formulas import FORMS, formula
from sparcipal.report.terminal import result_view

ESC = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\r\x00\x7f"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
X = np.random.default_rng(0).standard_normal((30, 6))
ENTRIES = [None, True, "x", [], {}, 10**400, -1, [[[]]], float("nan"), 0, 99, 1e308, ESC, [ESC]]
# What Python says of operands, and no sentence for a reader.
OF_PYTHON = re.compile(r"NoneType|object (is|has)|unhashable|argument|index|unsupported|__init__")


@pytest.fixture(scope="module")
def document():
    return json.loads(sparse_pca(X, n_components=2, n_nonzero_coefs=2).to_json(proof=False))


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def saved(tmp_path, document):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    return path


def poisoned(document):
    copy = json.loads(json.dumps(document))
    copy["note"] = copy["certificate"]["message"] = ESC
    copy["certificate"]["guarantees"] = {ESC: 0.5}
    copy["feature_names"] = [ESC + str(j) for j in range(6)]
    copy["certificate"]["bounds"][0]["name"] = ESC
    copy["settings"]["method"] = ESC
    copy["info"]["notes"] = copy["info"]["more"] = [ESC]
    copy["info"]["source"] = ESC
    copy["info"]["texts"] = {"options": {"stop_words": ESC}}
    return copy


def test_show_spells_control_characters_out(document, tmp_path):
    path = saved(tmp_path, poisoned(document))
    for form in ("table", "json"):
        shown = run("show", path, "--format", form)
        assert shown.exit_code == 0, shown.output
        assert not RAW.search(shown.output)
    console = Console(force_terminal=True, no_color=True, width=200)
    with console.capture() as capture:
        console.print(result_view(Result.load(path)))
    text = re.sub(r"\x1b\[[0-9;]*m", "", capture.get())  # bold and dim are rich's own
    assert not RAW.search(text)
    assert "owned" in text


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"supports": ESC}},
        {"settings": {"n_nonzero_total": ESC}},
        {"certificate": {"screening": {ESC: ESC}}},
        {"certificate": {"status": ESC}},
        {"feature_names": {ESC: 1}},
        {"info": {"texts": {"options": {"weighting": ESC}}}},
    ],
)
def test_words_that_are_not_known_are_refused_spelled_out(document, tmp_path, change):
    copy = json.loads(json.dumps(document))
    for key, value in change.items():
        copy[key] = {**copy[key], **value} if key != "feature_names" else value
    shown = run("show", saved(tmp_path, copy))
    assert shown.exit_code == 1
    assert shown.output.startswith("Error: ")
    assert not RAW.search(shown.output)


def test_errors_spell_control_characters_out(document, tmp_path):
    copy = json.loads(json.dumps(document))
    copy["certificate"]["bounds"][0][ESC] = 1
    shown = run("show", saved(tmp_path, copy))
    assert shown.exit_code == 1
    assert not RAW.search(shown.output)


@pytest.mark.parametrize(
    "change",
    [
        {"feature_names": ["a", "b"]},
        {"n_features": 1},
        {"n_features": -3},
        {"variances": {"$array": "", "dtype": "<f8", "shape": [0]}},
        {"supports": [], "weights": []},
        {"settings": {"n_nonzero_coefs": "many"}},
        {"settings": {"n_nonzero_coefs": [[]]}},
        {"certificate": {"screening": {"kept": 3}}},
        {"certificate": {"bounds": []}},
        {"certificate": {"status": "sure"}},
        {"certificate": {"guarantees": {"x": None}}},
        {"certificate": {"guarantees": {"x": float("nan")}}},
        {"certificate": {"guarantees": {"x": 10**400}}},
        {"certificate": {"guarantees": {"x": 1e308}}},
        {"certificate": {"bound": 1e308}},
        {"mean": {"$array": "", "dtype": "<f8", "shape": [float("inf")]}},
        {"certificate": {"value": float("nan")}},
        {"certificate": {"value": float("inf"), "bound": float("-inf")}},
    ],
    ids=str,
)
def test_show_never_answers_with_a_traceback(document, tmp_path, change):
    copy = json.loads(json.dumps(document))
    for key, value in change.items():
        if isinstance(value, dict) and "$array" not in value:
            copy[key].update(value)
        else:
            copy[key] = value
    path = saved(tmp_path, copy)
    for form in ("table", "csv", "json"):
        shown = run("show", path, "--format", form)
        assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception
    shown = run("show", path, "--report", tmp_path / "r.html")
    assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception


@pytest.fixture(scope="module")
def documents(document):
    near = alternatives(sparse_pca(X, n_nonzero_coefs=2), X, within=0.2, force=1)
    table = X * np.geomspace(3.0, 0.05, 6)
    few = sparse_pca(lambda: iter([table]), n_nonzero_coefs=2, memory_limit=1, certify=False)
    told = {**document, "info": {**document["info"], "notes": ["a"], "texts": {"options": {}}}}
    return told, json.loads(few.to_json()), json.loads(near.to_json())


def places(document, at=()):
    """The places of all entries of a document."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, entry in inside:
        yield (*at, key)
        if isinstance(entry, dict | list):
            yield from places(entry, (*at, key))


def read(kind, document):
    """What a document holds, and why it is refused."""
    try:
        return kind.from_json(json.dumps(document)), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("which", range(3))
def test_an_entry_of_another_kind_is_refused_in_words_or_prints(documents, which):
    """A sample of all entries and replacements."""
    document, rng = documents[which], random.Random(which)
    kind = Alternatives if which == 2 else Result
    known = list(places(document))
    for place in rng.sample(known, min(60, len(known))):
        *outer, last = place
        for entry in rng.sample(ENTRIES, 3):
            changed = json.loads(json.dumps(document))
            reduce(getitem, outer, changed)[last] = entry
            found, why = read(kind, changed)
            assert not OF_PYTHON.search(why), (place, entry)
            if found is None:
                continue
            result = getattr(found, "result", found)
            shown = [str(found), *(formula(result, form) for form in FORMS)]
            shown += [found._repr_html_(), again.python_lines(result)]
            assert not RAW.search("".join(shown)), (place, entry)


def test_promises_of_nothing_are_not_printed(document, tmp_path):
    copy = json.loads(json.dumps(document))
    copy["certificate"]["guarantees"] = {"Theorem 1": 0.0, "Theorem 2": 0.999}
    shown = run("show", saved(tmp_path, copy)).output
    assert "Theorem 1" not in shown
    assert "Theorem 2; reached: at least" in " ".join(shown.split())


def test_show_does_not_read_a_proof_that_it_does_not_need(document, tmp_path):
    path = saved(tmp_path, document)
    (tmp_path / "model.json.proof").write_text("no proof at all")
    for form in ("table", "json", "csv"):
        assert run("show", path, "--format", form).exit_code == 0


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("place", ["model.json", "model.json.proof"])
def test_pipes_and_devices_are_refused_at_once(document, tmp_path, place):
    path = saved(tmp_path, document)
    for special in (os.mkfifo, lambda name: os.symlink("/dev/zero", name)):
        (tmp_path / place).unlink(missing_ok=True)
        special(tmp_path / place)
        command = [sys.executable, "-m", "sparcipal", "verify", str(path), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "regular file" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_begins_otherwise_is_not_read(tmp_path):
    """One of four gigabytes, none of which is on the disk."""
    path = tmp_path / "model.json"
    with path.open("wb") as stream:
        stream.truncate(LIMIT)
    shown = run("show", path)
    assert shown.exit_code == 1
    assert "does not begin with a brace" in shown.output


def test_files_above_the_limit_are_refused(tmp_path):
    result = sparse_pca(X, n_nonzero_coefs=2)
    path = tmp_path / "model.json"
    result.save(path)
    size = path.stat().st_size
    with pytest.raises(ValueError, match=f"above the limit of {size - 1:,}"):
        Result.load(path, limit=size - 1)
    with pytest.raises(ValueError, match=r"proof has .* above the limit"):
        Result.load(path, limit=size)
    assert Result.load(path, limit=size, proof=False).value == result.value
    assert Result.load(path, limit=(tmp_path / "model.json.proof").stat().st_size)
