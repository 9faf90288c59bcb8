"""What include and exclude mean for a claim: which features count, and how they are numbered.

A component with the anchors F has its nonzeros on some S that contains F, |S| <= s; the loadings on
F may be zero. Excluded features are none of the covariance that proofs speak of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..problem.result import Bound, Result
from .budget import require
from .covariance import CheckedCovariance, Question
from .gate import parse
from .records import Among


def check_constraints(result: Result) -> None:
    """Refuse constraints that no question can have."""
    settings = result.settings
    include, exclude = settings.get("include") or (), settings.get("exclude") or ()
    p = result.n_features
    there = all(0 <= feature < p for features in (exclude, *include) for feature in features)
    require(there, "include and exclude name features that are not there")
    once = all(len(set(features)) == len(features) for features in (exclude, *include))
    require(once, "include and exclude name a feature twice")
    if not include:
        return
    k = len(settings["n_nonzero_coefs"])
    one_each = len(include) == k and settings.get("n_nonzero_total") is None
    require(one_each, "there is not one list of anchors per component")
    apart = settings["supports"] == "disjoint" and settings["objective"] == "sum"
    require(k == 1 or apart, "components with anchors overlap, or their variances are adjusted")


def with_anchors(result: Result) -> tuple[np.ndarray, ...]:
    """Return the features of each component, those of loading zero that it must count included."""
    include = result.settings.get("include") or ((),) * len(result.supports)
    own = (np.array(anchors, dtype=np.intp) for anchors in include)
    return tuple(np.union1d(support, anchors) for support, anchors in zip(result.supports, own))


def excluded_features(result: Result) -> np.ndarray:
    return np.unique(np.array(result.settings.get("exclude") or (), dtype=np.intp))


def allowed_features(cov: CheckedCovariance, excluded: np.ndarray) -> CheckedCovariance:
    """Return the features that bounds speak of at most: kept ones that are not excluded."""
    inner, kept = cov.known()
    return inner if excluded.size == 0 else inner.part(np.flatnonzero(~np.isin(kept, excluded)))


def numbered(question: Question, kept: np.ndarray) -> Question:
    """Return the same question when only the features `kept` are left, all anchors among them."""
    places = {int(feature): place for place, feature in enumerate(kept)}
    there = all(feature in places for own in question.include for feature in own)
    require(there, "a bound leaves out features that must be used")
    include = tuple(tuple(places[feature] for feature in own) for own in question.include)
    return replace(question, include=include)


def own_proof(bound: Bound, cov: CheckedCovariance) -> tuple[Among, dict[str, Any]]:
    """Return which features a bound speaks of, and the proof of its own family."""
    told = {key: bound.data[key] for key in ("kept", "screened") if key in bound.data}
    own = {key: value for key, value in bound.data.items() if key not in told}
    return parse(Among, told, {"P": cov.p, "p": cov.p}, bound.name), own


def spoken_of(
    among: Among, cov: CheckedCovariance, question: Question, excluded: np.ndarray
) -> tuple[CheckedCovariance, Question]:
    """Return the features that a bound speaks of: enough for full components, of which all bounds
    are; and the question, numbered as they are."""
    part = cov if among.kept is None else cov.restrict(among.kept, excluded)
    needed = question.n_nonzero if question.disjoint else question.s_max
    require(part.p >= needed, "a bound speaks of fewer features than there are nonzeros")
    return part, question if among.kept is None else numbered(question, among.kept)
