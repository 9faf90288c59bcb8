"""What was found and what is proved, in plain words, for a reader who knows no statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from . import words

if TYPE_CHECKING:
    from ..problem.result import Result
    from .samples import Samples

NAMED = 4  # features of a component that a sentence names
SLIGHT = 0.1  # weights below it, in a unit vector, do not decide where a score is high
LITTLE = 0.2  # scores that correlate by less say something of their own
SAME = 0.8  # scores that correlate at least so much say nearly the same
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def sentences(result: Result, samples: Samples | None = None) -> list[str]:
    """Return a short text: the data, what the components capture, how good that is."""
    alike = [] if samples is None else redundant(samples.correlations)
    return [_data(result), _captured(result), proved(result), *alike]


def nouns(result: Result) -> tuple[str, str]:
    """Return what a row and a column of the table are called."""
    return ("document", "word") if result.info.get("texts") else ("sample", "feature")


def count(number: int) -> str:
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else f"{number}"


def _data(result: Result) -> str:
    row, column = nouns(result)
    p = f"{result.n_features:,} {column}s"
    if result.n_samples is None:
        return f"The data are a matrix of covariances between {p}."
    scaled = result.settings.get("scale")
    weight = " Each feature counts alike, whatever its unit." if scaled else ""
    if column == "word":
        return f"The data are {result.n_samples:,} {row}s with {p}."
    return f"The data are {result.n_samples:,} {row}s of {p}.{weight}"


def _captured(result: Result) -> str:
    k = len(result.supports)
    used = np.unique(np.concatenate(result.supports)).size
    whole = result.total_variance
    few = f"{count(k).capitalize()} component{'s' if k > 1 else ''}"
    what = f"{nouns(result)[1]}s"
    part = words.share_percent(result.value / whole) if whole > 0 else ""
    share = f"{part} of the variance of all {what}" if part else ""
    features = f"{count(used)} of the {what}" if used < result.n_features else f"all {what}"
    if used == 1:
        features = f"one of the {what}"
    verb = "" if k > 1 else "s"
    if not words.repeated(result) or not part:
        return f"{few} that use{verb} {features} capture{verb} {share}."
    new = words.share_percent(result.adjusted_variance / whole)
    return (
        f"{few} that use {features} have variances that add up to {share}. They repeat each "
        f"other: what is new in each beyond those before it adds up to {new} (adjusted variance)."
    )


def together(result: Result, share: float) -> list[str]:
    """Return what all scores together explain of the features, by regression, and how that goes
    with the other figures of what is explained, where they differ."""
    if not math.isfinite(share):
        return []
    explained = f"explains {words.share_percent(share)} of the variance of all {nouns(result)[1]}s"
    if len(result.supports) == 1:
        return [f"Predicting every feature from its score {explained}."]
    told = [f"Predicting every feature from all scores {explained} (explained together)."]
    if words.repeated(result):
        told.append(
            "That is a third figure: the sum of variances counts what scores have in common in "
            "each of them, adjusted variance in one, and a prediction uses it for every feature."
        )
    return told


def _sums(result: Result) -> bool:
    """Return whether what is proved is about a sum of variances that counts something twice."""
    if len(result.supports) == 1 or result.settings.get("objective") != "sum":
        return False
    return not result.adjusted_variance >= (1 - 1e-6) * result.value  # an unknown one is nan


def proved(result: Result) -> str:
    """Return what is proved, as one would say it."""
    certificate, whole = result.certificate, result.total_variance
    gap = certificate.gap
    if not math.isfinite(gap):
        return "How much better another choice could be is not known: nothing was proved."
    limits = words.limits(result)
    given = f" with {' and '.join(limits)}" if limits else ""
    if words.is_best(certificate):
        more = "has a larger sum of variances" if _sums(result) else "captures more"
        if gap < words.SAME:
            return f"This is the best there is: it is proved that no other choice{given} {more}."
        return (
            f"To within {words.about_percent(gap)} this is the best there is: it is proved that no "
            f"other choice{given} {more} beyond that."
        )
    if not whole > 0:
        more = words.about_percent(gap)
        return f"It is proved that no other choice{given} is better by more than {more}."
    most = words.gap_percent(certificate.bound / whole)  # rounded up, unlike a share
    more = f"captures more than {most} of it"
    if _sums(result):
        more = f"has a sum of variances above {most} of it"
    return f"It is proved that no other choice of features{given} {more}."


def component(result: Result, j: int) -> str:
    """Return one sentence on a component: its features, and which of them oppose the others."""
    names = result.names(j)
    order = np.argsort(-np.abs(result.weights[j]), kind="stable")
    weights = result.weights[j][order]
    with_it = [name for name, w in zip(names, weights) if w >= SLIGHT]
    against = [name for name, w in zip(names, weights) if w <= -SLIGHT]
    if not against:
        return f"High where {_listed(with_it)} {_are(with_it)} high."
    return f"High where {_listed(with_it)} {_are(with_it)} high and {_listed(against)} low."


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(names: list[str]) -> str:
    shown = [words.plain(name, 60) for name in names[:NAMED]]
    more = len(names) - len(shown)
    if more > 0:
        return f"{', '.join(shown)} and {count(more)} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def redundant(correlations: np.ndarray) -> list[str]:
    """Name the pairs of components that say nearly the same, by the correlations of scores."""
    told = _pairs(correlations, SAME, math.inf)
    if not told:
        return []
    several = "s" if len(told) > 1 else ""
    return [
        f"Components {'; '.join(told)} say nearly the same; in brackets: the "
        f"correlation{several} of their scores."
    ]


def related(correlations: np.ndarray) -> str:
    """Say whether components say the same, nearly or in part."""
    found = redundant(correlations)
    partly = _pairs(correlations, words.REDUNDANT, SAME)
    if partly:
        verb = "Components" if not found else "In part also"
        found.append(f"{verb} {'; '.join(partly)}{' say partly the same' if not found else ''}.")
    if found:
        return " ".join(found)
    apart = (correlations - np.eye(len(correlations))).ravel()
    most = float(apart[np.abs(apart).argmax()])
    if abs(most) >= LITTLE:
        return f"Components are related in part: two scores correlate by {most:z.2f}."
    return "Each component says something of its own: their scores correlate little."


def _pairs(r: np.ndarray, least: float, below: float) -> list[str]:
    """Return the pairs whose correlation has a size in this range, with it."""
    pairs = ((j, i) for i in range(len(r)) for j in range(i) if least <= abs(r[i, j]) < below)
    return [f"{j + 1} and {i + 1} ({r[i, j]:z.2f})" for j, i in pairs]
