"""The unit of a proof is a claim too: one that does not fit the data hides what it likes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, Status, sparse_pca, verify
from sparcipal.data.screening import Screened
from sparcipal.problem.result import Bound

X = np.random.default_rng(0).standard_normal((40, 8))
TINY = 1e-290  # what underflow can hide, in the units of a proof


def poor_answer(result: Result, unit: float) -> Result:
    """Claims far above the truth, inside of what underflow hides at this unit."""
    hidden = TINY * unit
    value, rounding = 6 * hidden, 7.5 * hidden
    certificate = replace(
        result.certificate,
        unit=unit,
        value=value,
        rounding=rounding,
        bounds=(Bound("trace", value, {}),),
        bound=value,
        status=Status.OPTIMAL,
    )
    return replace(
        result, certificate=certificate, variances=np.array([value]), total_variance=value
    )


@pytest.mark.parametrize("exponent", [970, 1000, 1020])
def test_nothing_is_hidden_in_underflow(exponent):
    result = sparse_pca(X, n_nonzero_coefs=2, certify=False)
    verdict = verify(poor_answer(result, 2.0**exponent), X)
    assert verdict.verdict == "refused"
    assert "does not fit the data" in verdict.reason


@pytest.mark.parametrize("exponent", [-1023, -1022, -1000])
def test_nothing_is_hidden_in_overflow(exponent):
    """Sums of variances that overflow are no total that any number comes close to."""
    result = sparse_pca(X, n_nonzero_coefs=2, certify=False)
    trace = Bound("trace", float(np.sort(X.var(axis=0))[-2:].sum()) * (1 + 1e-9), {})
    certificate = replace(
        result.certificate,
        unit=2.0**exponent,
        bounds=(trace,),
        bound=trace.value,
        status=Status.GAP,
    )
    half = replace(result, certificate=certificate, total_variance=result.total_variance / 2)
    assert verify(half, X).verdict == "refused"
    assert verify(replace(half, certificate=result.certificate), X).verdict == "refused"


def test_the_total_of_scaled_data_has_no_unit():
    result = sparse_pca(X, n_nonzero_coefs=2, scale=True)
    assert verify(result, X)
    certificate = replace(result.certificate, unit=4.0)
    forged = replace(result, certificate=certificate, total_variance=4 * result.total_variance)
    assert "does not fit the data" in verify(forged, X).reason


@pytest.mark.parametrize("level", [0.0, 7.0])
def test_data_that_do_not_vary_explain_nothing(level):
    result = sparse_pca(X, n_nonzero_coefs=2, certify=False)
    forged = replace(poor_answer(result, 2.0**1000), mean=np.full(8, level))
    for table in (np.full(X.shape, level), sp.csr_array(np.full(X.shape, level))):
        assert "does not fit the data" in verify(forged, table).reason
    nothing = replace(forged, n_samples=None, mean=None, scale=None)
    nothing = replace(nothing, settings={**result.settings, "center": False})
    verdict = verify(nothing, covariance=np.zeros((8, 8)))
    assert "does not fit the data" in verdict.reason


@pytest.mark.parametrize("size", [1e-139, 1e-20, 1.0, 2.0, 1e20, 1e143])
@pytest.mark.parametrize("moved", [0.0, 1e6])
def test_verify_accepts_data_in_any_units(size, moved):
    """Whatever the units of the data, and however small the variances beside the means."""
    for table in ((X + moved) * size, sp.csr_array((X + moved) * size)):
        result = sparse_pca(table, n_nonzero_coefs=2, certify=False)
        verdict = verify(result, table)
        assert verdict, verdict.reason
    streamed = sparse_pca((X + moved) * size, n_nonzero_coefs=2, certify=False, memory_limit=1)
    assert streamed.certificate.screening
    verdict = verify(streamed, (X + moved) * size)
    assert verdict, verdict.reason
    A = np.cov(X.T) * size
    verdict = verify(sparse_pca(covariance=A, n_nonzero_coefs=2, certify=False), covariance=A)
    assert verdict, verdict.reason


def test_units_of_screened_tables_are_those_of_kept_features():
    """The unit is that of the kept features, also where a dropped one varies far more."""
    given = Screened(np.diag([3.0, 2.0]), np.array([0, 1]), np.array([3.0, 2.0, 1e30]))
    result = sparse_pca(covariance=given, n_nonzero_coefs=1)
    assert verify(result, covariance=given)
    forged = replace(result, certificate=replace(result.certificate, unit=2.0**900))
    assert "does not fit the data" in verify(forged, covariance=given).reason
    streamed = sparse_pca(X, n_nonzero_coefs=1, certify=False, memory_limit=1)
    certificate = replace(streamed.certificate, unit=2.0**900)
    assert "does not fit" in verify(replace(streamed, certificate=certificate), X).reason
