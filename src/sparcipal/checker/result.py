"""Recheck a saved result against the data, with plain NumPy and no code of the solver.

`verify` recomputes the covariance, the value that the loadings give, and every bound that the
certificate names. A claim that does not follow is refused, with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from ..problem.answers import Alternatives
from ..problem.result import Bound, Certificate, Result, Status
from . import dropped as screened
from .answers import Answer, check_alternatives
from .arithmetic import Arithmetic, Float, Numbers, at_least
from .budget import WORK, Budget, Missing, Refused, require
from .components import check_components, check_promises, check_settings
from .constraints import allowed_features, excluded_features, own_proof, spoken_of
from .containers import check_names, chosen
from .covariance import CheckedCovariance, Question
from .family import Case, Rounding, family_of, redone
from .gaps import stand_in
from .gate import parse
from .moments import covariance_for
from .records import Claim, Settings
from .redundancy import check_redundancy
from .tables import source_of
from .value import check_value

# Below what underflow hides, margins need not agree.
NOTHING = 1e-280
BEST = 0.01  # percent; components that are farther from a bound are not called the best
# What numbers can cause that passed the gate: overflow, matrices without eigenvalues.
MALFORMED = (ArithmeticError, np.linalg.LinAlgError, MemoryError, RecursionError)
OF_CERTIFICATES = frozenset(field.name for field in fields(Certificate))
ENTRIES_OF_BOUNDS = tuple(field.name for field in fields(Bound))
# What a result says beside its claim. Nothing of it is part of the proof.
REPORTED = ("certificate.nodes", "certificate.eliminated", "certificate.message")
BESIDE = ("n_iter", "note", "info")


@dataclass(frozen=True)
class Verification:
    """The checker's verdict. It is true exactly when everything claimed was confirmed.

    Attributes
    ----------
    verdict : "proved", "not proved" or "refused"
        "not proved" means that nothing is wrong, but that the proof is not there to be rechecked.
    reason : str
    value, bound : float
        As recomputed here; nan when it did not come to that.
    not_rechecked : tuple of str
        What the result says beside its claim: reported by the solver, and no part of the proof.
    """

    verdict: Literal["proved", "not proved", "refused"]
    reason: str
    value: float = math.nan
    bound: float = math.nan
    not_rechecked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.verdict == "proved"


def verify(
    result: Any,
    X: Any = None,
    *,
    covariance: Any = None,
    sample_weight: Any = None,
    arithmetic: Literal["float", "exact"] = "float",
    budget: float | Budget = WORK,
) -> Verification:
    """Recheck `result` against the data it was computed from.

    Parameters
    ----------
    result : Result, Alternatives, or a fitted SparsePCA
    X : array, memory map, sparse matrix, frame, Table, or function that returns blocks of rows
        The data; or pass `covariance` if the result came from a covariance matrix.
    covariance : array of shape (p, p), Screened or Sums
    sample_weight : array of shape (n,)
    arithmetic : "float" or "exact"
        "exact" decides every inequality of the proof without rounding, from the data as they
        stand. It takes longer, and python-flint: ``pip install "sparcipal[exact]"``.
    budget : float or Budget
        The replay of a proof may take so many elementary operations, of about a nanosecond each; an
        operation of exact arithmetic counts for 20. A `sparcipal.checker.Budget` limits its memory
        as well. A file that asks for more is refused before that is spent.

    Returns
    -------
    Verification
        True when proved; `.reason` says what was refused, and why.
    """
    found = result if isinstance(result, Alternatives) else None
    result = _result_of(result if found is None else found.result)
    no_data = (str, bytes, PurePath, dict, set, Result, Alternatives, Verification)
    for name, given in (("X", X), ("covariance", covariance), ("sample_weight", sample_weight)):
        none = isinstance(given, no_data) and not hasattr(given, "tocsr")  # a sparse dict
        if none or _fitted(given) is not None:
            file = name == "X" and isinstance(given, str | PurePath)
            remedy = f"pass sparcipal.read({str(given)!r})" if file else "call verify(result, X)"
            raise TypeError(f"{name} is a {type(given).__name__}; {remedy}")
    if (X is None) == (covariance is None):
        raise ValueError("pass exactly one of X and covariance: the data the result came from")
    if arithmetic not in ("float", "exact"):
        raise ValueError(f"arithmetic is 'float' or 'exact', not {arithmetic!r}")
    ar: Arithmetic = Float()
    if arithmetic == "exact":
        from .exact import Ball

        ar = Ball()
    means = (budget if isinstance(budget, Budget) else Budget(budget)).counting(ar.nanoseconds)
    # Forged numbers overflow; what is then infinite or no number proves nothing.
    with np.errstate(all="ignore"), ar.running():
        return _verify(result, (X, covariance, sample_weight), ar, means, found)


def _result_of(given: Any) -> Result:
    found = given if isinstance(given, Result) else _fitted(given)
    if found is None and callable(getattr(type(given), "fit", None)):
        raise TypeError(
            f"result is a {type(given).__name__} that is not fitted; call its fit(X) before "
            "verify(estimator, X)"
        )
    if found is None:
        raise TypeError(
            f"result is a {type(given).__name__}, neither a Result nor a fitted estimator; call "
            "verify(result, X), with Result.load(path) for a saved one"
        )
    return found


def _fitted(given: Any) -> Result | None:
    """Return the result of a fitted estimator; None for anything else."""
    found = getattr(given, "__dict__", {}).get("result_")
    return found if isinstance(found, Result) else None


def _verify(
    raw: Result,
    given: tuple[Any, Any, Any],
    ar: Arithmetic,
    budget: Budget,
    found: Alternatives | None = None,
) -> Verification:
    value = math.nan
    try:
        result, (X, covariance, sample_weight) = claimed(raw), given
        covariance = covariance if X is not None else _of_sums(covariance, result)
        plain = type(X) is np.ndarray or X is None
        table, others = (X, []) if plain else chosen(X, result.feature_names)
        source = None if X is None else source_of(table)
        missing, repair = result.settings.get("missing"), result.certificate.repair
        require(missing == "pairwise" or not repair, "a repair of covariances that need none")
        require(source is not None or not missing, "a covariance has no missing entries")
        if source is not None and missing:
            check_names(result.feature_names, source.names)
            result, source, covariance, sample_weight = stand_in(result, source, sample_weight)
        if source is not None and ar.exact:
            source = source.loaded()  # for two computations from one reading
        cov = rounded = covariance_for(result, source, covariance, sample_weight)
        check_settings(result)
        check_components(result, budget, ar.bytes)
        value = check_value(result, cov)
        if len(result.supports) > 1:
            check_redundancy(raw.info, result, cov)
        if ar.exact:
            from .exact_covariance import check_exact_value, exactly

            cov = exactly(result, source, covariance, sample_weight, budget)
            check_exact_value(result, cov, budget)
        try:
            bound = _check_bounds(result, cov, rounded, ar, budget)
            if found is not None:
                behind = partial(_proved, given=given, ar=ar, budget=budget)
                check_alternatives(found, Answer(result, cov, rounded, behind, ar, budget))
        except (ValueError, IndexError) as error:
            raise Refused(f"the proof cannot be replayed: {error}") from error
    except Refused as refused:
        return Verification("refused", str(refused), value)
    except Missing as missing:
        return Verification("not proved", str(missing), value)
    except MALFORMED as error:
        return Verification("refused", f"the proof cannot be replayed: {error!r}", value)
    reported = tuple(name for name in REPORTED + BESIDE if _says_something(attrgetter(name)(raw)))
    said = _sentence(result.certificate, ar)
    asked = result.settings
    for does, told in (("excluded", [asked.get("exclude")]), ("required", asked.get("include"))):
        if count := sum(len(features or ()) for features in told or ()):
            said += f"; {count} feature{'s are' if count > 1 else ' is'} {does} by its settings"
    if found is not None:
        listed = sum(len(near.supports) for near in found.components)
        costs = sum(len(near.drops) + len(near.forces) for near in found.components)
        costs += len(found.drops)
        said += (
            f"; rechecked as well: {listed} listed supports, that none is missing above the level "
            f"of its list, and {costs} costs of features"
        )
    if any(others):
        said += f"; {max(others)} columns of X that the result does not name were set aside"
    return Verification("proved", said, value, bound, reported)


def _of_sums(given: Any, result: Result) -> Any:
    """Return the Screened of sums over rows; refused where these cannot be sums of any."""
    try:
        return screened.of_sums(given, result)
    except Refused:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise Refused(f"no covariance can be made of the sums: {error}") from error


def _proved(raw: Result, given: tuple[Any, Any, Any], ar: Arithmetic, budget: Budget) -> Result:
    """Return the claim of another result about the same data, once it is rechecked."""
    claim = claimed(raw)
    verdict = _verify(claim, given, ar, budget)
    require(bool(verdict), f"the answer behind a cost: {verdict.reason}")
    return claim


def _sentence(certificate: Certificate, ar: Arithmetic) -> str:
    """Return what is proved: how far the components are from the best possible ones, rounded up."""
    how = "value and bound hold in exact arithmetic" if ar.exact else "value and bound hold"
    least = certificate.value - certificate.rounding
    gap = 100 * max(certificate.bound / least - 1, 0.0) if least > 0 else math.inf
    if not math.isfinite(gap):
        return how
    within, told = (
        f"{math.ceil(g / step) * step:.3g} %"
        for g in (gap, 100 * certificate.gap)
        for step in [10.0 ** (math.floor(math.log10(g)) - 2) if g > 0 else 1.0]
    )
    within += f" ({told} is claimed, rounding may hide the rest)" * (told != within)
    if certificate.status is Status.OPTIMAL and gap <= BEST:
        return f"{how}: no components of this kind explain more, to within {within}"
    return f"{how}: within {within} of the best possible"


def claimed(result: Result) -> Result:
    """Return the claim of a result, made of what has passed the gate and of nothing else; refused
    if its entries are not what their names say. See records.Claim."""
    certificate, settings = result.certificate, result.settings
    require(type(settings) is dict, "settings: not a record")
    bounds, status = certificate.bounds, certificate.status
    require(type(bounds) in (list, tuple), "bounds: not a list")
    asked = {field.name for field in fields(Settings)}
    raw_settings = {key: settings[key] for key in settings if type(key) is str and key in asked}
    raw = {
        "settings": raw_settings,
        "status": status.value if type(status) is Status else None,
        "bounds": [{key: getattr(b, key) for key in ENTRIES_OF_BOUNDS} for b in bounds],
    }
    for name in (field.name for field in fields(Claim)):
        raw.setdefault(name, getattr(certificate if name in OF_CERTIFICATES else result, name))
    claim = parse(Claim, raw, {}, "the result")
    told = {field.name: getattr(claim, field.name) for field in fields(Claim)}
    settings = {name: getattr(claim.settings, name) for name in asked}
    told["settings"] = {
        name: value for name, value in settings.items() if value is not None or name in raw_settings
    }
    told["bounds"] = tuple(Bound(b.name, b.value, b.data, b.margin) for b in claim.bounds)
    told["status"] = Status(claim.status)
    own = {name: told.pop(name) for name in OF_CERTIFICATES & set(told)}
    return Result(certificate=Certificate(**own), **told)


def _says_something(value: Any) -> bool:
    """Tell whether a remark is neither zero nor empty; objects of other types are not asked."""
    return bool(value) if type(value) in (int, float, str, dict, list, tuple) else True


def _check_bounds(
    result: Result,
    cov: CheckedCovariance,
    rounded: CheckedCovariance,
    ar: Arithmetic,
    budget: Budget,
) -> float:
    """Redo every bound; the smallest one, in the user's units. Margins are those of `rounded`."""
    certificate, settings = result.certificate, result.settings
    values = [bound.value for bound in certificate.bounds]
    require(values == sorted(values), "the bounds are not in increasing order")
    require(certificate.bound == values[0], "the bound is not the smallest that is proved")
    require(certificate.bound >= certificate.value, "the bound is below the value")
    optimal = certificate.gap <= certificate.tol
    require(
        optimal == (certificate.status is Status.OPTIMAL),
        f"a gap of {certificate.gap:.3g} at tolerance {certificate.tol:.3g} does not mean "
        f"{certificate.status.value!r}",
    )
    for status, limit in ((Status.NODE_LIMIT, "max_nodes"), (Status.TIME_LIMIT, "time_limit")):
        require(
            certificate.status is not status or settings[limit] is not None,
            f"{status.value!r} without a {limit}",
        )
    question = Question(
        tuple(settings["n_nonzero_coefs"]),
        settings["nonnegative"],
        settings["supports"] == "disjoint" or settings["n_components"] == 1,
        (certificate.value - certificate.rounding) / cov.unit,
        settings.get("n_nonzero_total"),
        settings.get("include") or (),
        settings["supports"] if settings["supports"] != "disjoint" else "free",
        settings["objective"] == "adjusted",
    )
    excluded = excluded_features(result)
    allowed = allowed_features(rounded, excluded)
    for bound in certificate.bounds:
        if isinstance(cov, screened.ScreenedCovariance):
            own = screened.recheck(bound, Case(cov, question, ar, budget), excluded)
            screened.check_screening(result, bound, rounded)
        else:
            own = _recheck(bound, Case(cov, question, ar, budget), excluded)
        own = at_least(ar.upper(own), cov.unit)
        require(
            own <= bound.value,
            f"the bound {bound.name!r} is {bound.value:.17g}, but only {own:.17g} can be proved",
        )
        _check_margin(bound, rounded, allowed, question)
    check_promises(certificate, settings)
    return float(certificate.bound)


def _check_margin(
    bound: Bound, cov: CheckedCovariance, inner: CheckedCovariance, question: Question
) -> None:
    """Check that what is said to be for rounding is what the formula says for the features `inner`,
    at least once and no more than a few times."""
    among, own = own_proof(bound, cov)
    family = family_of(bound.name)
    record = family.read(own, inner.p if among.kept is None else among.kept.size)
    needed = family.margin(Rounding(record, question, inner, inner.rounding))
    allowed = family.margin(Rounding(record, question, inner, inner.allowance))
    margin = bound.margin / cov.unit
    require(
        needed <= margin + NOTHING and margin <= 8 * allowed + NOTHING,
        f"the bound {bound.name!r} has a margin of {bound.margin:.3g} for rounding, which is not "
        f"that of this computation ({needed * cov.unit:.3g})",
    )


def _recheck(bound: Bound, case: Case, excluded: np.ndarray) -> Numbers:
    among, own = own_proof(bound, case.cov)
    require(among.screened is None, f"the bound {bound.name!r} speaks of a screened table")
    part, asked = spoken_of(among, case.cov, case.question, excluded)
    return redone(bound.name, own, case._replace(cov=part, question=asked))
