"""No admissible components of any kind explain more than the bound, as far as a search finds them.

`python -m benchmarks.soundness 1000 0 modes` is the long campaign.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from tests.support.mode_cases import (
    KINDS,
    ModeCase,
    best_competitor,
    mode_case,
    not_admissible,
    one_mode_case,
    wrong,
)


@pytest.mark.parametrize("kind", KINDS)
def test_no_admissible_components_exceed_the_bound(kind: str) -> None:
    # the first of them is verified in exact arithmetic as well
    for seed in (5, 6):
        assert not one_mode_case(seed, kind), mode_case(seed, kind)


@pytest.mark.parametrize("kind", ["free", "orthogonal", "common", "uncorrelated"])
def test_the_judge_finds_the_optimum_where_it_is_known(kind: str) -> None:
    # with all features allowed, the principal components are the best of every kind
    X = np.random.default_rng(2).standard_normal((20, 4)) * [1, 2, 3, 4]
    A = X.T @ X / 20
    most, W = best_competitor(ModeCase(1, kind, A, (4, 4), {}))
    assert most == pytest.approx(np.linalg.eigvalsh(A)[-2:].sum(), rel=1e-9)
    assert W.shape == (4, 2)


def test_the_judge_sees_a_bound_that_is_too_low() -> None:
    case = ModeCase(1, "common", np.diag([4.0, 3.0, 2.0, 1.0]), (2, 2), {})
    result = case.run()
    certificate = replace(result.certificate, bound=7.0 * (1 - 1e-9))
    reasons = list(wrong(case, replace(result, certificate=certificate)))
    assert any("more than the bound" in reason for reason in reasons)


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[ModeCase, Result]]:
    """One covariance, and its components of every kind."""
    X = np.random.default_rng(5).standard_normal((15, 6)) @ np.random.default_rng(6).random((6, 6))
    A = X.T @ X / 15
    options = {"method_options": {"effort": 0}}
    cases = {kind: ModeCase(0, kind, A, (3, 3), options) for kind in KINDS}
    return {kind: (case, case.run()) for kind, case in cases.items()}


@pytest.mark.parametrize("claimed", KINDS)
def test_verify_confirms_another_kind_only_where_the_claim_is_true(
    claimed: str, answers: dict[str, tuple[ModeCase, Result]]
) -> None:
    settings = answers[claimed][1].settings
    asked = {name: settings[name] for name in ("supports", "objective", "uncorrelated")}
    refused = 0
    for kind, (case, result) in answers.items():
        forged = replace(result, settings={**result.settings, **asked})
        forged = Result.from_json(forged.to_json())
        if verify(forged, covariance=case.A).verdict != "proved":
            assert kind != claimed
            refused += 1
            continue
        other = replace(case, kind=claimed)
        W = np.asarray(result.components).T
        assert not list(not_admissible(other, W))
        assert best_competitor(other, list(W.T))[0] <= result.bound * (1 + 1e-12)
    assert refused


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("free", {"objective": "sum"}),
        ("orthogonal", {"objective": "adjusted"}),
        ("common", {"objective": "adjusted"}),
        ("orthogonal", {"uncorrelated": True}),
        ("orthogonal", {"nonnegative": True}),
        ("common", {"nonnegative": True}),
        ("uncorrelated", {"nonnegative": True}),
        ("free", {"supports": "shared"}),
        ("free", {"uncorrelated": 1}),
    ],
)
def test_combinations_that_make_no_sense_are_refused(
    kind: str, change: dict[str, object], answers: dict[str, tuple[ModeCase, Result]]
) -> None:
    """The call names the parameter, and a file with these settings is not confirmed."""
    case, result = answers[kind]
    asked = {"n_components": 2, "n_nonzero_coefs": 3, **KINDS[kind], **change}
    with pytest.raises((TypeError, ValueError), match=next(iter(change))):
        sparse_pca(covariance=case.A, **asked)
    forged = replace(result, settings={**result.settings, **change})
    assert verify(forged, covariance=case.A).verdict == "refused"
