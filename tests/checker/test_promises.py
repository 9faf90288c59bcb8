"""What theorems promise in advance is claimed only where it is proved, and rechecked."""

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from tests.support.second_checker import check


def decaying(seed: int, n: int = 60, p: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p)) * 0.7 ** np.arange(p)


@pytest.fixture(scope="module")
def promised() -> Result:
    return sparse_pca(
        decaying(0), n_nonzero_coefs=4, method="spannogram", method_options={"accuracy": 0.2}
    )


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_a_promise_is_proved_together_with_value_and_bound(promised, arithmetic):
    pytest.importorskip("flint")
    (share,) = promised.certificate.guarantees.values()
    assert share >= 0.8 * (1 - 1e-5)
    checked = verify(promised, decaying(0), arithmetic=arithmetic)
    assert checked, checked.reason
    assert "certificate.guarantees" not in checked.not_rechecked


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
@pytest.mark.parametrize("share", [1.0, 1.5, -0.1, float("nan"), True, "all"])
def test_a_promise_of_more_than_is_proved_is_refused(arithmetic, share):
    pytest.importorskip("flint")
    X = decaying(1)
    result = sparse_pca(X, n_nonzero_coefs=6, method="spannogram", rank=1, certify=False)
    assert result.gap > 1e-5
    name = "Papailiopoulos et al. 2013, Theorem 1"
    forged = replace(result.certificate, guarantees={name: share})
    verdict = verify(replace(result, certificate=forged), X, arithmetic=arithmetic)
    assert verdict.verdict == "refused"
    assert "guarantees" in verdict.reason or f"is promised by {name!r}" in verdict.reason


def test_a_promise_is_exactly_what_is_proved_and_no_unit_more(promised):
    X, certificate = decaying(0), promised.certificate
    (name,) = certificate.guarantees
    proved = (certificate.value - certificate.rounding) / certificate.bound
    for share, verdict in ((proved * (1 - 1e-15), "proved"), (proved * (1 + 1e-15), "refused")):
        told = replace(promised, certificate=replace(certificate, guarantees={name: share}))
        assert verify(told, X).verdict == verdict


@pytest.mark.parametrize("method", ["spannogram", "auto", "bipartite", None])
@pytest.mark.parametrize("year", ["Papailiopoulos et al. 2013", "Asteris et al. 2014"])
def test_a_promise_is_of_the_method_of_its_theorem(promised, method, year):
    promise = {f"{year}, Theorem 1": 0.5}
    told = replace(promised, certificate=replace(promised.certificate, guarantees=promise))
    told = replace(told, settings={**told.settings, "method": method})
    if method is None:
        del told.settings["method"]
    right = method == "spannogram" and "2013" in year
    said = verify(told, decaying(0))
    assert said.verdict == ("proved" if right else "refused")
    assert right or said.reason.endswith("says nothing about this method")
    assert (check(told.to_json(), decaying(0)) == "proved") == right


def test_fits_claim_no_promise_that_they_cannot_prove():
    """Signed and nonnegative, several components of a net, scales of all sizes: none is refused."""
    claimed = 0
    for seed in range(12):
        X = decaying(seed, 25, 9) * 10.0 ** (4 * (seed % 5) - 8)
        asked = {"n_nonzero_coefs": 3, "certify": False}
        if seed % 3 == 2:
            net = {"points": "net", "eps": 0.5, "error_term": seed % 2 == 1}
            asked |= {"n_components": 2, "method": "bipartite", "method_options": net, "rank": 2}
        else:
            asked |= {"method": "spannogram", "rank": 1 + seed % 4, "nonnegative": seed % 3 == 1}
        result = sparse_pca(X, **asked)
        checked = verify(result, X)
        assert checked, checked.reason
        for share in result.certificate.guarantees.values():
            assert 0 < share <= result.value / result.bound
            claimed += 1
    assert claimed >= 6


def test_promises_are_of_theorems_that_there_are(promised):
    """The name is printed beside what is proved, so that the file may not choose it."""
    certificate = replace(promised.certificate, guarantees={"and unique (proved)": 0.5})
    verdict = verify(replace(promised, certificate=certificate), decaying(0))
    assert verdict.verdict == "refused"
    assert "guarantees" in verdict.reason
