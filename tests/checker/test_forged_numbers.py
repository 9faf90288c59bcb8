"""Whatever numbers a proof holds, no family of bounds proves less than the optimum.

Data of the right shape with extreme, negative, tiny and impossible entries: the checker must find a
bound that holds, infinity, no number at all, or an error.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.budget import Missing
from sparcipal.checker.covariance import (
    CheckedCovariance,
    Question,
    covariance_of,
    covariance_of_data,
)
from sparcipal.checker.result import MALFORMED
from tests.support.brute import best_value
from tests.support.replay import recheck

TINY = (0.0, 1e-320, 1e-300, 1e-162, 1e-20, 1e-9, 1e-3)
USUAL = (0.1, 0.5, 1.0, 3.0)
HUGE = (1e3, 1e9, 1e16, 1e20, 1e100, 1e154, 1e200, 1e300, 1e308, np.inf, np.nan)
EXTREMES = np.array([*TINY, *USUAL, *HUGE])


def numbers(rng: np.random.Generator, size: int, wild: float) -> np.ndarray:
    """Mostly about one; some from the ends of floating point, of either sign."""
    out = rng.random(size) * rng.choice([0.01, 0.3, 1.0])
    odd = rng.random(size) < wild
    out[odd] = rng.choice(EXTREMES, int(odd.sum()))
    if rng.random() < 0.2:
        out[:] = rng.choice(EXTREMES)
    return np.where(rng.random(size) < 0.3 * (rng.random() < 0.5), -out, out)


def problem(rng: np.random.Generator) -> tuple[CheckedCovariance, np.ndarray]:
    """Covariances of a few features, in the units of a proof."""
    p = int(rng.integers(1, 6))
    X = rng.standard_normal((int(rng.integers(2, 9)), p)) * 10.0 ** rng.integers(-1, 1, p)
    if rng.random() < 0.3:
        X[:, rng.integers(p)] = X[:, 0]
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = 1.0
    X /= np.abs(X).max()
    if rng.random() < 0.5:
        A = X.T @ X / len(X)
        return covariance_of(A, 1.0), A
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    return cov, cov.dense()


def question(rng: np.random.Generator, p: int, alone: bool) -> Question:
    k = 1 if alone else int(rng.integers(1, min(p, 3) + 1))
    sizes = [1] * k
    while sum(sizes) < p and rng.random() < 0.6:
        sizes[rng.integers(k)] += 1
    return Question(tuple(sizes), bool(rng.integers(2)), True, 0.0)


def forged_clip(rng, cov, asked):
    return "clip", {"rho": numbers(rng, 1, 0.7)[0]}


def forged_frobenius(rng, cov, asked):
    return "frobenius", {"c": numbers(rng, 1, 0.7)[0]}


def forged_dspca(rng, cov, asked):
    core = np.sort(rng.permutation(cov.p)[: int(rng.integers(1, cov.p + 1))])
    m = core.size
    moved = numbers(rng, m * (m - 1) // 2, rng.choice([0.0, 0.3]))
    return "dspca-dual", {"penalty": numbers(rng, 1, 0.5)[0], "core": core, "moved": moved}


def forged_greedy(rng, cov, asked):
    core = np.sort(rng.permutation(cov.p)[: int(rng.integers(1, cov.p + 1))])
    support = np.sort(rng.permutation(cov.p)[: int(rng.integers(1, cov.p + 1))])
    x = numbers(rng, support.size, rng.choice([0.0, 0.3]))
    if rng.random() < 0.6:
        x = rng.standard_normal(support.size)
        x /= np.linalg.norm(x)
    data = {"rho": numbers(rng, 1, 0.4)[0], "core": core, "support": support, "weights": x}
    return "greedy-dual", data


def forged_kyfan(rng, cov, asked):
    core = np.sort(rng.permutation(cov.p)[: int(rng.integers(1, cov.p + 1))])
    n = core.size
    wild = rng.choice([0.0, 0.0, 0.3])
    data = {
        "features": core,
        "price": np.abs(numbers(rng, n, wild)),
        "pad": numbers(rng, 1, 0.3)[0],
    }
    data["u"] = numbers(rng, n * (n - 1) // 2, wild)
    data["r"] = 10 * numbers(rng, n * (n - 1) // 2, 0.0) - 1
    return "kyfan", data


def forged_sphere(rng, cov, asked):
    r = int(rng.integers(1, 4))
    w, Q = np.linalg.eigh(cov.dense())
    V = (Q * np.sqrt(np.maximum(w, 0.0)))[:, ::-1][:, :r]
    r = V.shape[1]
    if rng.random() < 0.5:
        V = V * numbers(rng, r, 0.3)
    data = {"V": V, "s": asked.s_max, "level": numbers(rng, 1, 0.3)[0]}
    data["shift"] = numbers(rng, 1, 0.4)[0] * float(rng.choice([1e-6, 1.0]))
    data["nonnegative"] = asked.nonnegative and bool(rng.integers(2))
    data["proof"] = str(rng.choice(["features", "samples", "trace"]))
    roots = 2 ** (r if data["nonnegative"] else r - 1)
    data["tree"] = np.full(roots, -1, dtype=np.int8)
    if rng.random() < 0.5:
        data["clip"] = numbers(rng, 1, 0.7)[0]
    if rng.random() < 0.4:
        data["prices"] = np.abs(numbers(rng, cov.p, 0.2))
    return "lowrank", data


def forged_log(rng, cov, asked):
    """An honest log of another question, or with a number changed."""
    price = np.abs(numbers(rng, cov.p, 0.0))
    log = prove(
        cov.dense(),
        max(asked.cardinalities),
        TreeQuestion(
            nonnegative=asked.nonnegative and bool(rng.integers(2)),
            prices=price if rng.random() < 0.5 else None,
        ),
    ).log
    header = log[0]
    if rng.random() < 0.7:
        name = rng.choice(["bound", "unit", "s", "prices", "pads"])
        if name in ("prices", "pads"):
            header[name] = numbers(rng, cov.p, 0.3)
        elif name == "unit":
            header[name] = 2.0 ** int(rng.integers(-1070, 1023))
        else:
            header[name] = int(rng.integers(1, 5)) if name == "s" else numbers(rng, 1, 0.3)[0]
    return log, price


def forged_pair_split(rng, cov, asked):
    return "tree", {"log": forged_log(rng, cov, asked)[0]}


def forged_configuration(rng, cov, asked):
    log, price = forged_log(rng, cov, asked)
    charged = log[0].get("prices", np.zeros(cov.p))
    data = {"price": charged if rng.random() < 0.9 else price}
    data["parts"] = [{"s": asked.s_max, "log": log}]
    if rng.random() < 0.5:
        m = cov.p * (cov.p - 1) // 2
        data["packing"] = {"target": numbers(rng, 1, 0.1)[0]}
        data["packing"] |= {"u": numbers(rng, m, 0.1), "r": numbers(rng, m, 0.1)}
    return "configuration", data


FORGERS = {
    f.__name__.removeprefix("forged_"): f
    for f in (
        forged_clip,
        forged_frobenius,
        forged_dspca,
        forged_greedy,
        forged_kyfan,
        forged_sphere,
        forged_pair_split,
        forged_configuration,
    )
}


def outcome(family: str, seed: int) -> float:
    """What the checker proves, as a multiple of the optimum; infinity for nothing."""
    rng = np.random.default_rng(seed)
    cov, A = problem(rng)
    asked = question(rng, cov.p, family in ("greedy", "pair_split"))
    best = best_value(A, asked.cardinalities, asked.nonnegative)
    with np.errstate(all="ignore"):
        try:
            own = recheck(*FORGERS[family](rng, cov, asked), cov, asked)
        except (ValueError, Missing, *MALFORMED):
            return np.inf
    # no number is refused wherever it is compared
    if np.isnan(own) or best <= 1e-12:
        return np.inf
    # a bound near the largest float, over a small optimum: infinitely far above it
    with np.errstate(over="ignore"):
        return float(np.float64(own) / best)


@pytest.mark.parametrize("family", FORGERS)
def test_nothing_below_the_optimum_is_proved(family):
    proved = 0
    for seed in range(400 if family in ("clip", "frobenius") else 60):
        ratio = outcome(family, seed)
        assert ratio >= 1 - 1e-12, f"seed {seed}"
        proved += ratio < np.inf
    assert proved >= 3, "some of these numbers prove something"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["certificate"].update(tol=0.5, status="optimal"),
        lambda d: (
            d["certificate"].update(tol=5.0, status="optimal"),
            d["settings"].update(tol=5.0),
        ),
        lambda d: d["settings"].update(center="x"),
        lambda d: d["settings"].update(n_nonzero_coefs=[10**6]),
        lambda d: d["certificate"].update(unit=3.0),
        lambda d: d["certificate"].update(value=10**400),
        lambda d: d["certificate"].update(guarantees=[1]),
        lambda d: d.update(total_variance=None),
        lambda d: d.update(settings=None),
        lambda d: d.update(n_features=25.0),
    ],
)
def test_forged_settings_and_claims_are_refused_in_any_document(change):
    noise = np.random.default_rng(0).standard_normal((60, 25))
    result = sparse_pca(noise, n_nonzero_coefs=9, certify=False)
    document = json.loads(result.to_json())
    change(document)
    try:
        forged = Result.from_json(json.dumps(document))
    except ValueError:
        return
    assert verify(forged, noise).verdict == "refused"
