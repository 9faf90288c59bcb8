"""No changed claim is accepted, whatever entry of a saved result was changed, and none crashes.

`python -m tests.support.forgeries 20000` is the long campaign.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from tests.support import forgeries

KINDS = {
    "adjusted",
    "clip",
    "common",
    "configuration",
    "dspca-dual",
    "eigenvalues",
    "ellipsoid",
    "enumeration",
    "frobenius",
    "gershgorin",
    "greedy-dual",
    "kyfan",
    "labels",
    "lowrank",
    "neighbour",
    "orthogonal",
    "parts",
    "tree",
    "trace",
}


def results_of(subjects):
    """Those that are results, and no alternatives."""
    return [s for s in subjects if s.judge is not forgeries.looked_through]


def test_honest_results_carry_every_kind_of_proof(subjects):
    kinds, ends, rules = set(), set(), set()
    for subject in subjects:
        result = forgeries.loaded(subject, subject.document)
        verdict = verify(result, **subject.given)
        assert verdict, f"{subject.name}: {verdict.reason}"
        result = getattr(result, "result", result)
        rules.add(result.certificate.screening.get("rule", "in memory"))
        for bound in result.certificate.bounds:
            kinds.add(bound.name)
            ends |= {step["end"] for step in bound.data.get("log", []) if step["step"] == "node"}
    assert kinds == KINDS
    assert rules == {"in memory", "prices", "rows", "variances"}
    assert ends == {"branch", "closed", "empty", "leaf", "same", "shrink"}


def test_verify_refuses_mutations_of_results(subjects):
    seen = {"refused": 0, "not loaded": 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        subject = subjects[seed % len(subjects)]
        text, path = forgeries.forged(subject.document, rng)
        said = forgeries.outcome(subject, text, path)
        assert not said.startswith("WRONG"), f"seed {seed}, {subject.name}, {path}: {said}"
        seen[said] = seen.get(said, 0) + 1
    assert seen["refused"] > 30
    assert seen["not loaded"] > 6


SETTINGS = {
    "missing": [None, "rows", "mean", "median", "pairwise", 1],
    "include": [[], [[0]], [[0], [1]], [[99]], [0]],
    "exclude": [[0], [99], [0, 0], "x"],
    "n_nonzero_total": [1, 3, 10**9, 1.0],
    "supports": ["free", "common", "orthogonal", "disjoint"],
    "objective": ["sum", "adjusted"],
    "uncorrelated": [True, False],
    "center": [True, False],
    "scale": [True, False],
    "sample_weight": [True, False],
    "n_components": [1, 2, 10**9],
    "nonnegative": [True, False],
    "n_nonzero_coefs": [1, [1], [2, 2], [100], [0], []],
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_other_settings_have_a_verdict_and_no_error(subjects, setting):
    """Also where data have gaps, and the claim is one about complete data."""
    gaps = ("left out", "filled", "in pairs")
    everyone = [s for s in results_of(subjects) if s.name != "common matrix"]
    some = [s for i, s in enumerate(everyone) if i % 8 == 0 or s.name in gaps]
    for subject in some:
        for value in SETTINGS[setting]:
            document = json.loads(subject.document)
            document["settings"][setting] = value
            try:
                changed = Result.from_json(json.dumps(document))
            except ValueError:
                continue
            verdict = verify(changed, **subject.given)
            assert verdict.verdict in ("proved", "refused"), (subject.name, value)
            same = Result.from_json(subject.document).settings.get(setting) == value
            if setting == "missing" and subject.name in gaps and not same:
                assert verdict.verdict == "refused", (subject.name, value)


def test_verify_refuses_mutations_of_either_file(subjects, tmp_path):
    """The claim and the proof lie in two files: either may be forged alone."""
    path = tmp_path / "model.json"
    subjects = results_of(subjects)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        subject = subjects[seed % len(subjects)]
        original = Result.from_json(subject.document)
        original.save(path)
        victim = path if seed % 2 else path.with_name("model.json.proof")
        text, where = forgeries.forged(victim.read_text(), rng)
        victim.write_text(text)
        try:
            result = Result.load(path)
        except ValueError:
            continue
        said = forgeries.outcome(subject, result.to_json(), where)
        assert not said.startswith("WRONG"), f"seed {seed}, {subject.name}, {where}: {said}"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["settings"].update(scale=True),
        lambda d: d["settings"].pop("center"),
        lambda d: d["certificate"].update(status="node_limit"),
        lambda d: d["certificate"].update(status="time_limit"),
        lambda d: d["certificate"].update(unit=2.0**-1074),
        lambda d: d["certificate"].update(unit=2.0**1000),
        lambda d: d["certificate"]["bounds"][0].update(value=float("nan")),
        lambda d: d.update(sparcipal=1),
        lambda d: d.update(n_features=10**9),
        lambda d: d["settings"].update(n_components=10**9),
    ],
)
def test_changes_of_the_question_are_refused(change):
    A = np.cov(np.random.default_rng(0).standard_normal((60, 12)).T)
    result = sparse_pca(covariance=A, n_nonzero_coefs=5, certify=False)
    document = json.loads(result.to_json())
    change(document)
    try:
        changed = Result.from_json(json.dumps(document))
    except ValueError:
        return
    assert verify(changed, covariance=A).verdict == "refused"


def test_deeply_nested_proofs_end():
    """A proof inside a proof is silly and true; too deep a one is refused, without a crash."""
    A = np.eye(4) + 0.3
    whole = sparse_pca(covariance=A, n_nonzero_coefs=2, certify=False)
    for depth in (3, 100, 200, 400, 2000):
        document = json.loads(whole.to_json())
        last = document["certificate"]["bounds"][-1]
        part = {**last, "s": 2}
        for _ in range(depth):
            part = {"name": "parts", "value": last["value"], "s": 2, "data": {"parts": [part]}}
        document["certificate"]["bounds"].append({k: part[k] for k in ("name", "value", "data")})
        try:
            text = json.dumps(document)
            changed = Result.from_json(text)
        except (ValueError, RecursionError):
            continue
        assert verify(changed, covariance=A).verdict in ("proved", "refused")


def test_the_rounding_margin_may_not_be_lowered():
    X = np.random.default_rng(4).standard_normal((30, 6))
    for options in ({}, {"n_components": 2, "supports": "free"}, {"scale": True}):
        result = sparse_pca(X, n_nonzero_coefs=3, **options)
        assert verify(result, X)
        for factor in (0.0, 0.05, 1e4):
            document = json.loads(result.to_json())
            document["certificate"]["rounding"] *= factor
            assert verify(Result.from_json(json.dumps(document)), X).verdict == "refused"


def test_screened_claims_may_not_be_changed(subjects):
    """What is said of kept and dropped features, in the certificate and in its proof."""
    changes = {
        "kept": lambda v: v + 1,
        "dropped": lambda v: v - 1,
        "largest_dropped": lambda v: v * (1 + 1e-6),
        "rule": lambda v: "variances" if v == "prices" else "prices",
        "inside": lambda v: v * (1 - 1e-9),
        "touching": lambda v: v * (1 - 1e-9),
        "support_unchanged": lambda v: not v,
        "bound_holds": lambda v: not v,
    }
    for subject in (
        s for s in results_of(subjects) if Result.from_json(s.document).certificate.screening
    ):
        for name, change in changes.items():
            document = json.loads(subject.document)
            claims = document["certificate"]["screening"]
            proof = document["certificate"]["bounds"][0]["data"]["screened"]
            claims[name] = change(claims[name])
            changed = Result.from_json(json.dumps(document))
            assert verify(changed, **subject.given).verdict == "refused", (subject.name, name)
            if name in ("inside", "touching"):  # told the same way in both places
                proof[name] = change(proof[name])
                changed = Result.from_json(json.dumps(document))
                assert verify(changed, **subject.given).verdict == "refused", (subject.name, name)


def test_other_means_and_scales_than_those_of_a_screened_are_refused(subjects):
    subject = next(s for s in subjects if s.name.startswith("handed over"))
    result = Result.from_json(subject.document)
    for change in ({"mean": result.mean + 1e-9}, {"scale": result.scale * 2}, {"mean": None}):
        verdict = verify(replace(result, **change), **subject.given)
        assert verdict.verdict == "refused"
        assert "of the Screened" in verdict.reason


def test_logs_of_supports_larger_than_the_table_end_at_once(subjects):
    subject = next(s for s in subjects if s.name == "branched")
    document = json.loads(subject.document)
    bound = next(b for b in document["certificate"]["bounds"] if b["name"] == "tree")
    bound["data"]["log"][0]["s"] = 10**9
    verdict = verify(Result.from_json(json.dumps(document)), **subject.given)
    assert verdict.verdict == "refused"


def test_loadings_may_not_be_longer_than_one():
    """A norm that is off by 1e-10 would raise the value by twice that."""
    X = np.random.default_rng(4).standard_normal((30, 6))
    result = sparse_pca(X, n_nonzero_coefs=3)
    for factor in (1 + 1e-10, 1 - 1e-10):
        longer = replace(
            result,
            weights=tuple(w * factor for w in result.weights),
            variances=result.variances * factor**2,
            certificate=replace(result.certificate, value=result.value * factor**2),
        )
        verdict = verify(longer, X)
        assert verdict.verdict == "refused"
        assert "norm" in verdict.reason
