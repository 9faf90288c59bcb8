"""Supports that leave the core of a proof: the core, rows outside, pads."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import core as extension
from sparcipal.checker import kyfan
from sparcipal.checker import pairsplit as split
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data
from tests.support.margins import E


def outside_formula(A, core, theta, price, s, nonnegative):
    """m_j, the largest sum of charges of a row outside the core, one by one."""
    rest = np.setdiff1d(np.arange(len(A)), core)
    out = []
    for j in rest:
        size = np.maximum(A[j], 0.0) if nonnegative else np.abs(A[j])
        terms = [size[a] ** 2 / t - b for a, t, b in zip(core, theta, price)]
        terms += [size[i] for i in rest if i != j]
        out.append(A[j, j] + sum(sorted((max(v, 0.0) for v in terms), reverse=True)[: s - 1]))
    return rest, np.array(out)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_check_rest_accepts_rows_up_to_their_formula(nonnegative):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) * np.geomspace(3, 0.3, 9) + rng.standard_normal((12, 1))
        X = X * (1.0 if seed % 2 else 0.2)
        own = covariance_of_data(X, True, False, None, 1.0)[0]
        A, pad = own.dense(), float(rng.uniform(0.2, 2.0)) * own.diagonal.mean()
        core = np.sort(rng.permutation(9)[:4])
        for cov in (own, covariance_of(A, 1.0)):
            for s in (2, 4):
                given = (core, np.full(4, pad), np.zeros(4), s, nonnegative)
                rest, plain = outside_formula(A, *given)
                most = float(plain.max())
                extension._check_rest(rest, core, s, pad, most * (1 + 1e-9), nonnegative, cov)
                with pytest.raises(split.Unproved, match="outside"):
                    extension._check_rest(rest, core, s, pad, most * (1 - 1e-9), nonnegative, cov)


def test_check_rest_rounds_variances_up():
    """Entries that are off by more than their variances show must not be dismissed."""
    X = np.random.default_rng(0).standard_normal((12, 6))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 0.05
    core, rest = np.array([0, 1]), np.array([2, 3, 4, 5])
    v = own.diagonal + 4 * own.error_unit * own.weights
    seen = []
    cov_rows = lambda features, t, q, diagonal, terms: seen.append(terms(features)) or rest  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "_above", cov_rows)
        with pytest.raises(split.Unproved):
            extension._check_rest(rest, core, 2, 0.5, 1.0, False, own)
    assert np.allclose(seen[0][:, 0], v[rest] * v[core].max() / 0.5)
    assert np.allclose(seen[0][:, 1], np.sqrt(v[rest] * v[rest].max()))


ONE = Question((2,), False, True, 0.0)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_check_core_tests_the_matrix_of_its_formula(nonnegative, monkeypatch):
    """A_HH - U + Diag(pad + the s - 2 largest of V and copies of the pad)."""
    seen = []
    for module in (extension, split):
        monkeypatch.setattr(module, "EPS", E)
    monkeypatch.setattr(extension, "below", lambda M, t: seen.append(M) or True)
    rng = np.random.default_rng(1)
    A = np.cov(rng.standard_normal((9, 4)).T)
    u, r = rng.standard_normal(6) * 0.2, rng.standard_normal(6)
    step = {"features": np.arange(4), "u": u, "r": r}
    full, turn = np.zeros((4, 4)), np.zeros((4, 4))
    full[np.triu_indices(4, 1)], turn[np.triu_indices(4, 1)] = u, r
    full, turn = full + full.T, turn - turn.T
    v = split.pair_charges(full, turn, nonnegative)
    for s, pad in ((2, 0.1), (3, 0.1), (5, 0.05), (8, 0.3), (9, 3.0)):
        extension._check_core(step, A, s, pad, 1.0, nonnegative)
        for i in range(4):
            charges = sorted([*np.maximum(np.delete(v[i], i), pad), *[pad] * s], reverse=True)
            due = sum(charges[: s - 2]) * (1 + 8 * E) + pad
            assert seen[-1][i, i] >= (A[i, i] + due) * (1 - 1e-9)
        off = ~np.eye(4, dtype=bool)
        assert np.allclose(seen[-1][off], (A - full)[off])
        assert np.diagonal(seen[-1]).sum() <= np.trace(A) + 4 * s * max(v.max(), pad)


def test_extensions_and_splits_refuse_cores_that_are_none():
    cov = covariance_of(np.eye(4), 1.0)
    data = {"pad": 0.5, "bound": 2.0, "split": {"clip": 0.0}}
    for core in ([1, 1], [2, 1], [], [-1, 0], [0, 4]):
        with pytest.raises((split.Unproved, IndexError)):
            extension.check_extension({**data, "core": core}, 2, False, cov)
        joint = {"features": core, "u": np.zeros(len(core) * (len(core) - 1) // 2)}
        joint |= {"r": joint["u"], "price": np.zeros(len(core)), "pad": 0.5}
        if core != [2, 1]:  # whose order does not matter here
            with pytest.raises(ValueError, match="core"):
                kyfan.recheck(joint, cov, ONE)
    for number in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(split.Unproved):
            extension.check_extension({**data, "core": [0, 1], "pad": number}, 2, False, cov)
    with pytest.raises(split.Unproved):
        extension.check_extension({**data, "core": [0, 1], "bound": np.nan}, 2, False, cov)
