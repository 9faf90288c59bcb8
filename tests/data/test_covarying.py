"""Features that belong together are kept, though they vary less than noise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, verify
from sparcipal.data.covarying import FEWEST, Covarying, taken_in_turn
from sparcipal.data.moments import Moments
from sparcipal.problem.problem import Component


def hidden(n=3000, p=300, seed=0):
    """Three blocks of five related features of variance one among noise of larger variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(1.1, 1.4, p)
    planted = rng.permutation(p)[:15]
    for block in range(3):
        factor = rng.standard_normal((n, 1))
        members = planted[5 * block : 5 * block + 5]
        X[:, members] = 0.9 * factor + 0.4 * rng.standard_normal((n, 5))
    return X, set(planted.tolist())


def in_blocks(X):
    return lambda: iter([X[:200], X[200:]])


@pytest.mark.parametrize("scale", [False, True])
def test_hidden_blocks_are_found_in_passes(scale):
    X, planted = hidden()
    asked = {"n_components": 3, "n_nonzero_coefs": 5, "scale": scale, "certify": False}
    result = sparse_pca(in_blocks(X), memory_limit=8 * 5 * 60**2, **asked)
    assert result.certificate.screening["kept"] == 60
    assert set(np.concatenate(result.supports).tolist()) == planted
    assert verify(result, X)
    whole = sparse_pca(X, **asked, method_options={"effort": 0})
    assert result.value == pytest.approx(whole.value, rel=1e-9)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_sums_are_those_of_the_covariance(center, scale):
    rng = np.random.default_rng(1)
    X = rng.poisson(2.0, (50, 12)).astype(float)
    moments = Moments(12).add(X)
    Z = X - X.mean(axis=0) if center else X
    A = Z.T @ Z / 50
    if scale:
        A = A / np.sqrt(np.outer(np.diag(A), np.diag(A)))
    x = Component(np.array([2, 5]), np.array([0.6, 0.8]))
    for first, second in ((X[:20], X[20:]), (sp.csr_array(X[:20]), sp.csr_array(X[20:]))):
        empty = Covarying(moments, center, scale, [x])
        sums = empty.copy_empty().add(first).merge(empty.copy_empty().add(second))
        every = slice(FEWEST + 1)
        np.testing.assert_allclose(sums._images(every), A @ sums._tests(every), atol=1e-12)
        np.testing.assert_array_equal(sums._tests(every)[:, FEWEST], x.vector(12))


def test_gain_is_that_of_the_two_by_two_problem():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 6))
    moments = Moments(6).add(X)
    A = np.cov(X, rowvar=False, bias=True)
    x = Component(np.array([0, 1]), np.array([0.6, 0.8]))
    value = float(x.vector(6) @ A @ x.vector(6))
    gains = Covarying(moments, True, False, [x]).add(X).gains([value], False)
    exact = np.zeros(6)
    for i in range(2, 6):
        link = float(A[i] @ x.vector(6))
        exact[i] = np.linalg.eigvalsh([[value, link], [link, A[i, i]]])[-1] / value - 1
    np.testing.assert_allclose(gains / gains.max(), exact / exact.max(), atol=1e-5)


def test_any_feature_that_varies_adds_to_a_component_that_explains_nothing():
    X = np.random.default_rng(3).standard_normal((40, 5)) * [0.0, 1.0, 2.0, 0.0, 0.5]
    none = Component(np.array([0]), np.ones(1))
    sums = Covarying(Moments(5).add(X), True, False, [none]).add(X)
    with np.errstate(all="raise"):
        gains = sums.gains([0.0], False)
    np.testing.assert_array_equal(np.argsort(-gains, kind="stable"), [2, 1, 4, 0, 3])


def test_orders_are_read_in_turn():
    one, two = np.array([0, 1, 2, 3, 4]), np.array([4, 0, 3, 2, 1])
    assert taken_in_turn(3, one, two).tolist() == [0, 1, 4]
    assert taken_in_turn(5, one, two).tolist() == [0, 1, 2, 3, 4]
