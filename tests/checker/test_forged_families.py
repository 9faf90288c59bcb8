"""Each entry of the proof of each family, made what it must not be: all are refused at the gate.

The entries are those of honest proofs (tests/support/forgeries.py), and what is put in their place
is wrong by its type, shape, order or range alone: no computation is needed to see it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from tests.support import forgeries

Path = tuple[Any, ...]


@pytest.fixture
def subjects(subjects: list[forgeries.Subject]) -> list[forgeries.Subject]:
    """Those that are results, and no alternatives."""
    return [s for s in subjects if s.judge is not forgeries.looked_through]


def entries(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every entry of the data of a bound, with its place."""
    if path:
        yield path, node
    if isinstance(node, dict):
        for key, item in node.items():
            yield from entries(item, (*path, key))
    elif isinstance(node, list):
        for i, item in enumerate(node[:60]):
            yield from entries(item, (*path, i))


def wrong_values(value: Any) -> Iterator[Any]:
    """What must not stand where this stands."""
    if isinstance(value, np.ndarray):
        yield from wrong_arrays(value)
    elif isinstance(value, bool):
        yield from (int(value), None, "true", np.ones(1, dtype=bool))
    elif isinstance(value, int):
        yield from (float(value), value + 0.5, True, None, str(value), -(10**9), 10**400)
        yield np.array([value])
    elif isinstance(value, float):
        yield from (np.nan, np.inf, -np.inf, None, str(value), [value], np.array([value]))
    elif isinstance(value, str):
        yield from ("magic", "", None, 1, [value])
    elif isinstance(value, dict):
        yield from ({**value, "more": 1}, [], None, "x")
    elif isinstance(value, list):
        yield from ({}, None, "x", [None], [*value, {}], [[], *value])


def wrong_arrays(value: np.ndarray) -> Iterator[Any]:
    yield from (value[None], value.tolist(), value.astype(complex), value.astype(object), None)
    yield value.astype(np.float64 if value.dtype.kind == "i" else np.int64)
    yield value.astype(bool)
    if value.size == 0:
        return
    for entry in (-1, -(2**31)) if value.dtype.kind == "i" else (np.nan, np.inf):
        changed = value.copy()
        if value.dtype == np.int8:
            entry = max(entry - 1, -128)
        changed.flat[0] = entry
        yield changed
    if value.dtype.kind == "i" and value.dtype != np.int8:
        yield np.append(value, value[-1])  # one of them twice
        yield np.append(value, 10**6)
    if value.dtype.kind == "f":
        yield np.append(value, value[-1:] if value.ndim == 1 else value.ravel()[:1])
        yield value[:-1]


def shape_of(path: Path) -> Path:
    return tuple("[]" if isinstance(key, int) else key for key in path)


def places(subjects: list[Any]) -> Iterator[tuple[Any, Result, int, Path, Any]]:
    """One place for every kind of entry of every family."""
    seen: set[Path] = set()
    for subject in subjects:
        result = Result.from_json(subject.document)
        for number, bound in enumerate(result.certificate.bounds):
            for path, value in entries(bound.data):
                kind = (bound.name, *shape_of(path), type(value).__name__)
                if kind not in seen and "step" not in path:
                    seen.add(kind)
                    yield subject, result, number, path, value


def with_entry(result: Result, number: int, path: Path, value: Any) -> Result:
    bounds = list(result.certificate.bounds)
    data = copy.deepcopy(bounds[number].data)
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    if value is KeyError:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    bounds[number] = replace(bounds[number], data=data)
    return replace(result, certificate=replace(result.certificate, bounds=tuple(bounds)))


def test_entries_that_are_not_what_the_schema_says_are_refused(subjects):
    tried = 0
    for turn, (subject, result, number, path, value) in enumerate(places(subjects)):
        for wrong in list(wrong_values(value))[turn % 4 :: 4]:
            verdict = verify(with_entry(result, number, path, wrong), **subject.given)
            named = f"{subject.name}, {result.certificate.bounds[number].name}, {path}: {wrong!r}"
            assert verdict.verdict != "proved", named
            assert "cannot be replayed" not in verdict.reason, f"{named}: {verdict.reason}"
            tried += 1
    assert tried > 175


def test_entries_that_are_missing_are_refused_unless_the_claim_stays_proved(subjects):
    """Only a pad, a clip or such may be absent, and then the numbers have to do without it."""
    for turn, (subject, result, number, path, _) in enumerate(places(subjects)):
        if turn % 5 or isinstance(path[-1], int):
            continue
        forged = with_entry(result, number, path, KeyError)
        said = forgeries.outcome(subject, forged.to_json(), ("certificate", "bounds"))
        assert not said.startswith("WRONG"), f"{subject.name}, {path}: {said}"


def test_proofs_of_another_problem_are_refused(subjects):
    """Every proof, handed in for every other question that has a bound of its name."""
    known = [(subject, Result.from_json(subject.document)) for subject in subjects]
    tried = 0
    for subject, result in known:
        for other, stranger in known:
            if other is subject:
                continue
            proofs = {b.name: b.data for b in stranger.certificate.bounds if b.data}
            bounds = [
                replace(b, data={**proofs[b.name], **_told(b.data)}) if b.name in proofs else b
                for b in result.certificate.bounds
            ]
            same = all(a is b for a, b in zip(bounds, result.certificate.bounds))
            if same or tried > 250:
                continue
            tried += 1
            certificate = replace(result.certificate, bounds=tuple(bounds))
            text = replace(result, certificate=certificate).to_json()
            said = forgeries.outcome(subject, text, ("certificate", "bounds"))
            assert not said.startswith("WRONG"), f"{subject.name} with {other.name}: {said}"
    assert tried > 100


def _told(data: dict[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("kept", "screened") if key in data}


FIGURES = ("bound", "level", "shift", "target", "inside", "touching", "pad", "c", "rho", "penalty")


@pytest.mark.parametrize("factor", [1 - 1e-6, 0.9, 0.0, -1.0, 1e-30, 1e30])
def test_figures_of_proofs_and_claims_changed_together_prove_nothing_false(subjects, factor):
    for subject in subjects:
        document = json.loads(subject.document)
        certificate = document["certificate"]
        certificate["bounds"][0]["value"] *= min(factor, 1.0)
        certificate["bound"] = certificate["bounds"][0]["value"]
        _scale(certificate["bounds"][0]["data"], factor)
        said = forgeries.outcome(subject, json.dumps(document), ("certificate", "bounds"))
        assert not said.startswith("WRONG"), f"{subject.name}: {said}"


def _scale(node: Any, factor: float) -> None:
    if isinstance(node, dict):
        for key, item in node.items():
            if key in FIGURES and isinstance(item, float):
                node[key] = item * factor
            else:
                _scale(item, factor)
    elif isinstance(node, list):
        for item in node:
            _scale(item, factor)


@pytest.mark.parametrize("key", ["kept", "dropped", "largest_dropped", "inside", "touching"])
@pytest.mark.parametrize("factor", [0, 0.5, 2, -1])
def test_claims_about_dropped_features_are_refused_when_forged(subjects, key, factor):
    for subject in subjects:
        result = Result.from_json(subject.document)
        screening = result.certificate.screening
        if not screening or screening[key] * factor == screening[key]:
            continue
        forged = {**screening, key: type(screening[key])(screening[key] * factor)}
        if forged[key] == screening[key]:
            continue
        changed = replace(result, certificate=replace(result.certificate, screening=forged))
        assert verify(changed, **subject.given).verdict == "refused", subject.name


@pytest.mark.parametrize("key", ["support_unchanged", "bound_holds"])
def test_words_about_dropped_features_are_refused_when_forged(subjects, key):
    for subject in subjects:
        result = Result.from_json(subject.document)
        screening = result.certificate.screening
        if screening:
            forged = {**screening, key: not screening[key]}
            changed = replace(result, certificate=replace(result.certificate, screening=forged))
            assert verify(changed, **subject.given).verdict == "refused", subject.name


def test_a_bound_under_another_name_is_refused_soon():
    X = np.random.default_rng(1).standard_normal((60, 14))
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=3, certify=False)
    document = json.loads(result.to_json())
    document["certificate"]["bounds"][0]["name"] = "enumeration"
    assert verify(Result.from_json(json.dumps(document)), X).verdict == "refused"
