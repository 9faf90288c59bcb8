"""Bounds made of parts, changed: a part says no less than it proves, and has no parts itself."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.problem.result import Bound, Status

X = np.random.default_rng(3).standard_normal((20, 6))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="free", certify="fast")


@pytest.fixture(scope="module")
def parts(result) -> Bound:
    return next(b for b in result.certificate.bounds if b.name == "parts")


def only(result: Result, bound: Bound) -> Result:
    made = replace(result.certificate, bounds=(bound,), bound=bound.value)
    ended = Status.OPTIMAL if made.gap <= made.tol else Status.GAP
    return replace(result, certificate=replace(made, status=ended))


def within(part: dict) -> dict:
    return {**part, "name": "parts", "data": {"parts": [part]}}


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_values_of_parts_are_at_least_what_is_proved(result, parts, arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    assert verify(only(result, parts), X, arithmetic=arithmetic)
    for value in (lambda v: -1e9, lambda v: v * (1 - 1e-6)):
        data = deepcopy(parts.data)
        for part in data["parts"]:
            part["value"] = value(part["value"])
        verdict = verify(only(result, replace(parts, data=data)), X, arithmetic=arithmetic)
        assert "a part's bound is too small" in verdict.reason


@pytest.mark.parametrize("depth", [1, 2, 5, 400])
def test_parts_of_parts_are_refused(result, parts, depth):
    """Each level would hide the rounding margin of the ones below it, and takes a recursion."""
    made = parts.data["parts"]
    for _ in range(depth):
        made = [within(part) for part in made]
    for margin in (0.0, parts.margin):
        verdict = verify(only(result, replace(parts, data={"parts": made}, margin=margin)), X)
        assert verdict.verdict == "refused"
        assert "made of parts" in verdict.reason or "nested too deeply" in verdict.reason


def test_a_proof_that_holds_itself_is_refused(result, parts):
    data = deepcopy(parts.data)
    data["parts"][0]["data"] = data
    verdict = verify(only(result, replace(parts, data=data)), X)
    assert "nested too deeply" in verdict.reason
