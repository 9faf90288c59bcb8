"""Logs of a branch and bound that are no proof: each of them must be refused for what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.problem.result import Bound

P, S = 8, 3


@pytest.fixture(scope="module")
def covariance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, P)) + rng.standard_normal((40, 1))
    return X.T @ X


def node(parent, side, moved, end, **more):
    """A node as the solver writes it."""
    return {
        "step": "node",
        "parent": parent,
        "side": side,
        "moved": np.asarray(moved, dtype=np.int32),
        "passes": [],
        "end": end,
        **more,
    }


ROOT = node(-1, "root", [], "branch")


def claim(A, log, s=S):
    """A value of one feature, "proved" optimal by the log."""
    honest = sparse_pca(covariance=A, n_nonzero_coefs=s, certify=False)
    unit, j = honest.certificate.unit, int(np.argmin(np.diagonal(A)))
    value = float(A[j, j])
    log = [{"step": "problem", "s": s, "nonnegative": False, "bound": value * (1 + 1e-7) / unit,
            "unit": 1.0, "twins": {}}, *log]  # fmt: skip
    rounding = 8 * (s + 8) * 2.0**-52 * value
    bound = value * (1 + 2e-7)
    return replace(
        honest,
        supports=(np.array([j]),),
        weights=(np.array([1.0]),),
        variances=np.array([value]),
        certificate=replace(
            honest.certificate,
            value=value,
            bound=bound,
            rounding=rounding,
            status=type(honest.status)("optimal"),
            bounds=(Bound("tree", bound, {"log": log}),),
        ),
    )


def test_a_branch_on_whole_arrays_is_refused(covariance):
    """(j,) = moved takes a row where a feature should be; the comparison is then elementwise."""
    everything = np.arange(P, dtype=np.int32)[None, :]
    out = np.tile(np.arange(P, dtype=np.int32), (P, 1))
    out[np.arange(P), (np.arange(P) + 1) % P] = np.arange(P)
    log = [ROOT, node(1, "in", everything, "empty"), node(1, "out", out, "empty")]
    verdict = verify(claim(covariance, log), covariance=covariance)
    assert verdict.verdict == "refused"
    assert "dimensions" in verdict.reason


@pytest.mark.parametrize(("side", "pair"), [("out", (6, 7)), ("in", (0, 1))])
def test_feature_minus_one_is_refused_in_the_passes_of_a_node(side, pair):
    """As a place in an array -1 is the last feature; in a sorted list its place is the first."""
    A, s = np.eye(P), 2
    A[pair], A[pair[::-1]] = 0.9, 0.9
    both = {"out": np.zeros(0, dtype=np.int32), "in": np.zeros(0, dtype=np.int32)}
    both[side] = np.array([-1], dtype=np.int32)
    split = {"step": "split", "clip": 1.0}
    root = node(-1, "root", [], "closed", split=1, passes=[{"split": 1, **both}])
    verdict = verify(claim(A, [split, root], s), covariance=A)
    assert verdict.verdict == "refused"
    assert "0..7" in verdict.reason


@pytest.mark.parametrize("parent", [-1.5, True, None, "1", -2, 10**9])
def test_parents_that_are_no_earlier_nodes_are_refused(covariance, parent):
    log = [ROOT, node(parent, "root", [], "leaf")]
    verdict = verify(claim(covariance, log), covariance=covariance)
    assert verdict.verdict == "refused"
    assert "parent" in verdict.reason
