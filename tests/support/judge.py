"""Run a case and say what is wrong with what came out: exactly, without any tolerance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparcipal import Result, sparse_path, sparse_pca, verify

from .cases import Case, on_road
from .oracle import Oracle, exact_covariance, exact_matrix, worst_support
from .streams import handed

# Supports that an exact elimination looks at, for one signed component.
ELIMINATIONS = 30
# What some of the questions deserve as an answer.
REFUSALS = (
    "every feature is constant",
    "X has 1 sample",
    "X has no entry larger than",
    "covariance has its largest entry at",
    "method='nspca' works on the full matrix",
)


@dataclass
class Verdict:
    """What one case gave; margins are relative to the optimum."""

    wrong: list[str] = field(default_factory=list)
    refused: str = ""
    results: int = 0
    optimal: int = 0
    exact: int = 0  # bounds confirmed by exact elimination
    above: float = math.inf  # (bound - optimum) / optimum
    below: float = math.inf  # (exact value - (value - rounding)) / optimum
    proved_by: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)  # how dropped features were bounded


def judge(case: Case) -> Verdict:
    verdict = Verdict()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "X is a symmetric matrix")  # a hint
            warnings.filterwarnings("ignore", "set aside, not fitted")  # constant features
            results = _run(case)
    except ValueError as error:
        verdict.refused = str(error)
        if not verdict.refused.startswith(REFUSALS):
            verdict.wrong.append(f"refused: {error}")
        return verdict
    except KeyboardInterrupt as error:
        # before the rows are read there is nothing to return
        verdict.refused = str(error)
        if case.stop_after is None or case.source == "memory":
            verdict.wrong.append(f"stopped by nobody: {error}")
        return verdict
    except Exception as error:
        verdict.wrong.append(f"raised {error!r}")
        return verdict
    exact = _exact(case)
    oracle = Oracle(exact, case.options["nonnegative"])
    for result in results:
        verdict.results += 1
        verdict.optimal += result.status.value == "optimal"
        verdict.proved_by.append(result.certificate.proved_by)
        verdict.rules += [result.certificate.screening["rule"]] if case.source != "memory" else []
        verdict.wrong += list(_wrong(case, result, oracle, verdict))
    return verdict


def _run(case: Case) -> list[Result]:
    options = dict(case.options)
    if case.stop_after is not None:
        left = [case.stop_after]

        def callback(progress: Any) -> bool:
            left[0] -= 1
            return left[0] <= 0

        options["callback"] = callback
    if case.source != "memory":
        if case.source in ("screened", "plain"):
            options = {k: v for k, v in options.items() if k not in ("center", "scale")}
        with handed(case) as (given, _):
            return [sparse_pca(**{**options, **given})]
    given = {"covariance" if case.given else "X": case.data}
    with on_road(case.road):
        if case.entry == "sparse_path":
            return list(sparse_path(**given, **options))
        return [sparse_pca(**given, **options)]


def _exact(case: Case) -> Any:
    dense = case.data.toarray() if sp.issparse(case.data) else np.asarray(case.data)
    if case.given:
        return exact_matrix(dense)
    return exact_covariance(
        dense,
        center=case.options["center"],
        scale=case.options["scale"],
        weights=case.options.get("sample_weight"),
    )


def _wrong(case: Case, result: Result, oracle: Oracle, verdict: Verdict) -> Iterator[str]:
    certificate, settings = result.certificate, result.settings
    vectors = list(result.components)
    free = settings["supports"] == "free" and len(vectors) > 1
    worth = oracle.adjusted(vectors) if free else oracle.worth(vectors)
    best = worth
    if free:
        best = max(best, oracle.deflated(settings["n_nonzero_coefs"]))
    else:
        total = settings.get("n_nonzero_total")
        best = max(best, oracle.optimum(settings["n_nonzero_coefs"], total))
    size = best if best > 0 else oracle.size
    yield from _shape(result)
    value, bound = Fraction(certificate.value), Fraction(certificate.bound)
    below = worth - (value - Fraction(certificate.rounding))
    above = bound - best
    verdict.below = min(verdict.below, float(below / size))
    verdict.above = min(verdict.above, float(above / size))
    if below < 0:
        yield f"the loadings give {float(worth)!r}: {float(-below / size):.3g} less than claimed"
    if value > worth + size / 1000:
        yield f"a value of {certificate.value!r} for {float(worth)!r}: a margin is no excuse for it"
    if above < 0:
        yield (
            f"the bound {certificate.proved_by!r} is {certificate.bound!r}, the optimum "
            f"{float(best)!r}: {float(-above / size):.3g} more"
        )
    if len(vectors) == 1 and not settings["nonnegative"]:
        s = settings["n_nonzero_coefs"][0]
        if math.comb(oracle.p, s) <= ELIMINATIONS:
            verdict.exact += 1
            support = worst_support(oracle, s, bound)
            if support is not None:
                yield f"no exact proof that the features {support} stay below the bound"
    if case.source != "memory" and not free:
        yield from screening(result, oracle)
    yield from _checked(case, result)


def screening(result: Result, oracle: Oracle) -> Iterator[str]:
    """What is said of the kept and of the dropped features alone."""
    claims, settings = result.certificate.screening, result.settings
    kept = result.certificate.bounds[0].data["screened"]["kept"]
    sizes, total = settings["n_nonzero_coefs"], settings.get("n_nonzero_total")
    dropped = np.setdiff1d(np.arange(oracle.p), kept)
    # a constant feature is no choice, and neither is one that is excluded
    dropped = np.setdiff1d(dropped, settings.get("exclude") or ())
    dropped = [int(i) for i in dropped if oracle.exact[int(i)][int(i)] != 0]
    if len(kept) != claims["kept"] or len(dropped) != claims["dropped"]:
        yield f"{claims['dropped']} features are said to be dropped, but {len(dropped)} are"
    outside = oracle.optimum(sizes, total, dropped)
    if Fraction(claims["touching"]) < outside:
        yield f"with a dropped feature {float(outside)!r} can be explained: {claims}"
    inner = Oracle([[oracle.exact[i][j] for j in kept] for i in kept], settings["nonnegative"])
    inside = inner.optimum(sizes, total)
    if Fraction(claims["inside"]) < inside:
        yield f"the kept features explain {float(inside)!r}: {claims}"
    if claims["support_unchanged"] and outside > inside:
        yield "the best supports contain a dropped feature"


def _shape(result: Result) -> Iterator[str]:
    """The answer is of the kind that was asked for."""
    settings, certificate = result.settings, result.certificate
    sizes = sorted((s.size for s in result.supports), reverse=True)
    allowed = sorted(settings["n_nonzero_coefs"], reverse=True)
    if any(a > b for a, b in zip(sizes, allowed)) or len(sizes) != len(allowed):
        yield f"supports of {sizes} features, asked for {allowed}"
    if sum(sizes) > settings.get("n_nonzero_total", sum(sizes)):
        yield f"supports of {sum(sizes)} features in all"
    used = np.concatenate(result.supports)
    if settings["supports"] == "disjoint" and np.unique(used).size < used.size:
        yield "supports overlap"
    if settings["nonnegative"] and min(w.min() for w in result.weights) < 0:
        yield "a loading is negative"
    optimal = certificate.bound <= certificate.value * (1 + certificate.tol) * (1 + 1e-15)
    if (certificate.status.value == "optimal") and not optimal:
        yield "called optimal beyond the tolerance"


def _checked(case: Case, result: Result) -> Iterator[str]:
    again = Result.from_json(result.to_json())
    if again.to_json() != result.to_json():
        yield "not the same after a round trip"
    weights = {"sample_weight": case.options.get("sample_weight")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case.source != "memory":
            with handed(case) as (_, given):
                checked = verify(again, **given)
        else:
            checked = verify(again, **{"covariance" if case.given else "X": case.data}, **weights)
    if not checked:
        yield f"verify says {checked.verdict}: {checked.reason}"
