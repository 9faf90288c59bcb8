"""Ellipsoids: what the checker accepts holds in both arithmetics, and forgeries do not pass."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.family import Case, redone
from tests.bounds.test_ellipsoid import bounded, random_table
from tests.support.replay import FLOAT, recheck


def certified(seed, s=2):
    """A claim, its data, the checker's covariance, and the optimum."""
    rng = np.random.default_rng(seed)
    while True:
        X = random_table(rng)
        options = {"center": bool(rng.random() < 0.7), "scale": bool(rng.random() < 0.2)}
        own, best, bound = bounded(X, min(s, X.shape[1]), **options)
        if bound is not None:
            break
    checked = checked_covariance_of_data(X, options["center"], options["scale"], None, own.unit)[0]
    return bound, checked, best


def proves(data, cov, s=2):
    return recheck("ellipsoid", data, cov, Question((s,), False, True, 1.0))


@pytest.mark.parametrize("s", [1, 2, 3])
def test_what_the_solver_claims_is_proved(s):
    for seed in range(30):
        bound, cov, best = certified(seed, s)
        assert best * (1 - 1e-12) <= proves(bound.data, cov, s) <= bound.value


def test_no_record_proves_less_than_the_optimum():
    """T and the vectors changed in every way that keeps their shapes."""
    rng = np.random.default_rng(1)
    finite = 0
    for seed in range(60):
        bound, cov, best = certified(seed)
        n = len(bound.data["T"])
        for _ in range(15):
            forged = copy.deepcopy(bound.data)
            noise = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-6, 0)
            forged["T"] = forged["T"] * 10.0 ** rng.uniform(-3, 1) + rng.choice([0, 1]) * (
                (noise + noise.T) * np.trace(forged["T"])
            )
            forged["W"] = forged["W"] * np.float32(10.0 ** rng.uniform(-3, 1))
            kept = rng.random(forged["features"].size) < rng.choice([0.5, 1.0])
            forged["features"], forged["W"] = forged["features"][kept], forged["W"][kept]
            found = proves(forged, cov)
            finite += np.isfinite(found)
            assert found >= best * (1 - 1e-12)
    assert finite > 300


def changed(bound, cov):
    """Forgeries that claim less than there is to prove, each with its name."""
    data = bound.data
    n, m = len(data["T"]), data["features"].size
    yield "T shrunk", {**data, "T": data["T"] * (1 - 1e-3)}
    for place in range(m):
        kept = np.arange(m) != place
        yield (
            "a feature missing",
            {
                **data,
                "features": data["features"][kept],
                "W": data["W"][kept],
            },
        )
    if m:
        yield "no such feature", {**data, "features": np.append(data["features"][1:], cov.p)}
        yield "w scaled", {**data, "W": data["W"] * np.float32(0.9)}
        yield (
            "all features missing",
            {
                **data,
                "features": data["features"][:0],
                "W": data["W"][:0],
            },
        )
        yield "w of others", {**data, "W": -np.roll(data["W"], 1, axis=1)}
    skew = data["T"].copy()
    skew[0, -1] *= 1 + 1e-15 if n == 1 else 2.0
    skew[0, -1] += np.trace(data["T"]) if n > 1 else np.nan
    yield "asymmetric", {**data, "T": skew}
    yield "negative", {**data, "T": data["T"] - 2 * np.linalg.eigvalsh(data["T"])[-1] * np.eye(n)}
    low = data["T"] - 1.01 * np.linalg.eigvalsh(data["T"])[0] * np.eye(n)
    yield "one negative eigenvalue", {**data, "T": low}
    for name in ("T", "W"):
        for wrong in (np.nan, np.inf):
            bad = data[name].copy()
            if bad.size:
                bad[0, 0] = wrong
                yield f"{name} {wrong}", {**data, name: bad}
    yield "T zero", {**data, "T": np.zeros((n, n))}
    yield "T of another order", {**data, "T": np.eye(n + 1)}
    yield "another order", {**data, "order": n + 1, "T": np.eye(n + 1)}
    yield "T flat", {**data, "T": data["T"].ravel()}
    yield "T not square", {**data, "T": data["T"][:, :-1]}
    yield "w too short", {**data, "W": data["W"][:, :-1]}
    yield "w too few", {**data, "W": np.vstack([data["W"], np.zeros((1, n), dtype=np.float32)])}
    yield "integers", {**data, "T": np.eye(n, dtype=int)}
    yield "nothing", {"T": data["T"]}


# Records that are well formed: the stretch repairs them, and they prove what is true.
REPAIRED = ("T shrunk", "a feature missing", "w scaled", "all features missing", "w of others")


def test_forgeries_are_refused_or_prove_no_less_than_the_optimum():
    seen, more = set(), 0
    for seed in range(40):
        bound, cov, best = certified(seed)
        for name, forged in changed(bound, cov):
            found = proves(forged, cov)
            assert found >= best * (1 - 1e-12), name
            assert name in REPAIRED or found == np.inf, name
            more += name in REPAIRED and found > bound.value
            seen.add(name)
    assert len(seen) >= 18
    assert more > 40, "what is missing is paid for"


def test_scaled_down_certificates_prove_what_they_did():
    """The stretch gives back what a common factor takes."""
    bound, cov, _ = certified(3)
    half = {**bound.data, "T": bound.data["T"] / 4, "W": bound.data["W"] / 2}
    assert proves(half, cov) >= proves(bound.data, cov) * (1 - 1e-6)


def test_every_feature_is_looked_at_also_those_of_small_variance():
    rng = np.random.default_rng(4)
    X = np.zeros((6, 40))
    X[:, :4] = rng.standard_normal((6, 1))
    X[:, 4:] = 0.3 * rng.standard_normal((6, 1))
    cov = checked_covariance_of_data(X, False, False, None, 1.0)[0]
    F = cov.factor()
    u = F[:, :1] / np.linalg.norm(F[:, 0])
    narrow = (u @ u.T) * float(F[:, 0] @ F[:, 0]) + 1e-6 * np.eye(6)
    none = {"features": np.empty(0, dtype=np.int32), "W": np.empty((0, 6))}
    data = {**none, "order": 6, "T": narrow}
    true = float(np.linalg.eigvalsh(cov.dense())[-1])
    assert proves(data, cov, 40) >= true


def test_data_that_are_not_dense_are_refused():
    bound, cov, _ = certified(5)
    given = covariance_of(cov.dense(), 1.0)
    question = Question((2,), False, True, 1.0)
    with pytest.raises(Refused, match="dimensions"):
        redone("ellipsoid", bound.data, Case(given, question, FLOAT, Budget()))


def test_overlapping_supports_and_totals_are_refused():
    bound, cov, _ = certified(6)
    for question in (
        Question((2, 2), False, False, 1.0),
        Question((2, 2), False, True, 1.0, total=3),
    ):
        assert recheck("ellipsoid", bound.data, cov, question) == np.inf


def test_a_replay_is_charged_to_its_budget():
    bound, cov, _ = certified(7)
    case = Case(cov, Question((2,), False, True, 1.0), FLOAT, Budget(work=10))
    with pytest.raises(Refused, match="an ellipsoid"):
        redone("ellipsoid", bound.data, case)


def test_exact_arithmetic_accepts_the_same_claims():
    pytest.importorskip("flint")
    from sparcipal.checker.exact import Ball
    from sparcipal.checker.exact_covariance import DataCovariance

    ar, question = Ball(), Question((2,), False, True, 1.0)
    with ar.running():
        for seed in range(15):
            rng = np.random.default_rng(seed)
            X, center, scale = random_table(rng), bool(seed % 2), seed % 5 == 0
            own, best, bound = bounded(X, 2, center=center, scale=scale)
            if bound is None:
                continue
            checked = checked_covariance_of_data(X, center, scale, None, own.unit)[0]
            within = DataCovariance(X, center, scale, unit=own.unit)
            found = ar.upper(redone("ellipsoid", bound.data, Case(within, question, ar, Budget())))
            assert best * (1 - 1e-12) <= found <= bound.value
            for name, forged in changed(bound, checked):
                try:
                    found = redone("ellipsoid", forged, Case(within, question, ar, Budget()))
                except Refused:
                    assert name not in REPAIRED
                    continue
                assert ar.upper(found) >= best * (1 - 1e-12), name


def test_the_axes_are_charged_for_every_component():
    """k components take k eigendecompositions, which a file of any size may ask for."""
    bound, cov, _ = certified(3)
    budget = Budget()
    one = Question((2,), False, True, 0.0)
    redone("ellipsoid", bound.data, Case(cov, one, FLOAT, budget))
    single = budget.spent
    many = Question((2,) * 50, False, True, 0.0)
    redone("ellipsoid", bound.data, Case(cov, many, FLOAT, budget))
    assert budget.spent - single >= 50 * 20.0 * cov.n**3
