"""Supports that leave the core of a tree: charges of the core and of the rows outside."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import core as extension
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import covariance_of, covariance_of_data
from sparcipal.checker.gate import parse
from sparcipal.checker.pairsplit import pair_charges, triangle
from sparcipal.checker.records import Extension
from tests.support.replay import FLOAT

E = 2.0**-20


class Seen(Float):
    """Rounding terms that can be seen, and the matrices that were to be factored."""

    eps = E

    def __init__(self):
        self.matrices = []

    def below(self, M, t):
        self.matrices.append(M)
        return True


def record(**more):
    plain = {"core": np.arange(2), "pad": 0.5, "bound": 2.0, "split": {"clip": 0.0}}
    return {**plain, **more}


def outside_formula(A, core, pad, s, nonnegative):
    """m_j, the largest sum of charges of a row outside the core, one by one."""
    rest, out = np.setdiff1d(np.arange(len(A)), core), []
    for j in rest:
        size = np.maximum(A[j], 0.0) if nonnegative else np.abs(A[j])
        terms = [size[a] ** 2 / pad for a in core] + [size[i] for i in rest if i != j]
        out.append(A[j, j] + sum(sorted((max(v, 0.0) for v in terms), reverse=True)[: s - 1]))
    return rest, np.array(out)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_row_of_the_core_pays_a_pad_and_the_largest_charges(nonnegative):
    rng = np.random.default_rng(1)
    A = np.cov(rng.standard_normal((9, 4)).T)
    u, r = rng.standard_normal(6) * 0.2, rng.standard_normal(6)
    full, turn = triangle(u, 4), triangle(r, 4)
    full, turn = full + full.T, turn - turn.T
    v = pair_charges(full, turn, nonnegative, FLOAT)
    for s, pad in ((2, 0.1), (3, 0.1), (5, 0.05), (8, 0.3), (9, 3.0)):
        ar = Seen()
        raw = record(core=np.arange(4), pad=pad, split={"features": np.arange(4), "u": u, "r": r})
        extension.check_core(parse(Extension, raw, {"p": 4}), A, s, nonnegative, ar)
        (seen,) = ar.matrices
        for i in range(4):
            charges = sorted([*np.maximum(np.delete(v[i], i), pad), *[pad] * s], reverse=True)
            due = sum(charges[: s - 2]) * (1 + 8 * E) + pad
            assert seen[i, i] >= (A[i, i] + due) * (1 - 1e-9)
        off = ~np.eye(4, dtype=bool)
        assert np.allclose(seen[off], (A - full)[off])
        assert np.diagonal(seen).sum() <= np.trace(A) + 4 * s * max(v.max(), pad)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_features_outside_are_refused_exactly_when_a_row_may_exceed_the_bound(nonnegative):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) * np.geomspace(3, 0.3, 9) + rng.standard_normal((12, 1))
        X = X * (1.0 if seed % 2 else 0.2)
        own = covariance_of_data(X, True, False, None, 1.0)[0]
        A, pad = own.dense(), float(rng.uniform(0.2, 2.0)) * float(own.diagonal.mean())
        core = np.sort(rng.permutation(9)[:4])
        for cov in (own, covariance_of(A, 1.0)):
            for s in (2, 4):
                rest, plain = outside_formula(A, core, pad, s, nonnegative)
                given = (rest, s, nonnegative, cov, FLOAT, Budget())
                for factor, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
                    bound = float(plain.max()) * factor
                    told = parse(Extension, record(core=core, pad=pad, bound=bound), {"p": 9})
                    if holds:
                        extension.check_rest(told, *given)
                        continue
                    with pytest.raises(Refused, match="outside"):
                        extension.check_rest(told, *given)


def test_variances_outside_the_core_are_rounded_up(monkeypatch):
    """Entries that are off by more than their variances show must not be dismissed."""
    X = np.random.default_rng(0).standard_normal((12, 6))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 0.05
    core, rest = np.array([0, 1]), np.array([2, 3, 4, 5])
    v = own.diagonal + 4 * own.error_unit * own.weights
    seen = []
    look = lambda features, t, q, cov, terms, ar: seen.append(terms(features)) or rest  # noqa: E731
    monkeypatch.setattr(extension, "above", look)
    with pytest.raises(Refused):
        extension.check_rest(
            parse(Extension, record(bound=1.0), {"p": 6}), rest, 2, False, own, FLOAT, Budget()
        )
    assert np.allclose(seen[0][:, 0], v[rest] * v[core].max() / 0.5)
    assert np.allclose(seen[0][:, 1], np.sqrt(v[rest] * v[rest].max()))


def test_rows_are_compared_after_rounding_up():
    cov = covariance_of(np.eye(3), 1.0)
    ar = Seen()
    m = 2.0 + (2 + 8) * E * 1.0
    m += 2 * E * m
    for t, kept in ((m * (1 - E / 4), 3), (m * (1 + E / 4), 0)):
        left = extension.above(np.arange(3), t, 2, cov, lambda rows: np.full((3, 2), 0.5), ar)
        assert left.size == kept


@pytest.mark.parametrize(
    "wrong",
    [
        *({"core": np.array(core)} for core in ([1, 1], [2, 1], [-1, 0], [0, 4], [[0, 1]])),
        {"core": np.array([], dtype=int)},
        {"core": np.array([0.0, 1.0])},
        *({"pad": pad} for pad in (0.0, -1.0, np.inf, np.nan, None, 1, True)),
        {"bound": np.nan},
        {"split": {"clip": -1.0}},
        {"split": {}},
        {"split": {"clip": 0.0, "u": np.zeros(1)}},
        {"more": 1},
    ],
    ids=str,
)
def test_extensions_that_are_none_are_refused_at_the_gate(wrong):
    parse(Extension, record(), {"p": 4})
    with pytest.raises(Refused):
        parse(Extension, record(**wrong), {"p": 4})
