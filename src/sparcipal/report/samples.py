"""The samples of a table as pictures show them: scores, labels, and how features go with them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.checks import has_gaps
from ..data.explained import explained
from ..data.scores import scores
from ..data.table import Table
from . import words

if TYPE_CHECKING:
    from ..problem.result import Result

GROUPS = 7  # colours and markers that a reader tells apart
OTHERS = "others"
FEW = 0.3  # groups that together hold less of the samples than this are not worth their colours


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples by components, and what is known of both.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_components)
    names : tuple of str or None
    labels : tuple of str or None
    label_name : str
    features : ndarray
        The features that some component uses, increasing.
    columns : ndarray of shape (n_samples, len(features))
        Their entries, as they are in the table.
    correlations : ndarray of shape (n_components, n_components)
        Of the scores.
    together : float
        The share of the variance that the scores explain by regression.
    """

    scores: np.ndarray
    names: tuple[str, ...] | None
    labels: tuple[str, ...] | None
    label_name: str
    features: np.ndarray
    columns: np.ndarray
    correlations: np.ndarray
    together: float

    def __len__(self) -> int:
        return int(self.scores.shape[0])

    def name(self, row: int) -> str:
        return self.names[row] if self.names is not None else f"row {row + 1}"

    @property
    def directions(self) -> np.ndarray:
        """The correlation of each used feature with each score, (features, components); 0 where
        one of them is constant. Entries that are missing are left out, feature by feature."""
        known = ~np.isnan(self.columns)
        out = np.zeros((self.features.size, self.scores.shape[1]))
        for i, there in enumerate(known.T):
            x = self.columns[there, i]
            if x.size:
                out[i] = _correlations(x, self.scores[there])
        return out


def samples_of(result: Result, table: Any, labels: Any = None, label_name: str = "") -> Samples:
    """Score the rows of a table; `labels` replace those of the table."""
    values = scores(result, table.X)
    used = np.unique(np.concatenate(result.supports))
    columns = table.X[:, used]
    dense = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns)
    own = labels is None
    given = table.labels if own else tuple(str(label) for label in labels)
    if given is not None and len(given) != values.shape[0]:
        raise ValueError(
            f"labels has {len(given)} entries for {values.shape[0]} samples; pass one per sample"
        )
    # what components explain of all features needs the entries of those that none uses, too
    complete = table._checked or hasattr(table.X, "toarray") or not has_gaps(table.X)
    sums = explained(result, Table(table.X)) if complete else None
    names, scored = table.sample_names, ~np.isnan(values).any(axis=1)
    if not scored.all():  # rows without any entry have no place in a picture
        if not scored.any():
            raise ValueError("no row of the table has an entry in a column that components use")
        values, dense = values[scored], dense[scored]
        names = None if names is None else tuple(compress(names, scored))
        given = None if given is None else tuple(compress(given, scored))
    return Samples(
        scores=values,
        names=names,
        labels=given,
        label_name=(table.label_name if own else label_name) or "",
        features=used,
        columns=dense.astype(np.float64),
        correlations=_between(values) if sums is None else sums.correlations,
        together=float("nan") if sums is None else sums.share,
    )


def _correlations(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    away, off = x - x.mean(), values - values.mean(axis=0)
    length = np.sqrt((away @ away) * (off * off).sum(axis=0))
    return np.divide(away @ off, length, out=np.zeros(values.shape[1]), where=length > 0)


def _between(values: np.ndarray) -> np.ndarray:
    found = np.array([_correlations(column, values) for column in values.T])
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


@dataclass(frozen=True)
class Colouring:
    """How samples are coloured: by group, or along a scale of numbers.

    Attributes
    ----------
    groups : tuple of str
        The groups, most frequent first and rare ones under "others"; empty for a scale.
    group : ndarray of int
        The group of each sample.
    place : ndarray of float
        The place of each sample on the scale, from 0 to 1; nan where its label is no number.
    ends : (float, float)
        The numbers at the ends of the scale.
    """

    groups: tuple[str, ...]
    group: np.ndarray
    place: np.ndarray
    ends: tuple[float, float]

    @property
    def scaled(self) -> bool:
        return not self.groups

    @property
    def plain(self) -> bool:
        """Whether all samples look alike, so that there is nothing to explain."""
        return self.groups == ("",)


def colouring(labels: tuple[str, ...] | None, n_samples: int) -> Colouring:
    """Choose between groups and a scale: many different numbers are a scale."""
    nowhere, first = np.full(n_samples, np.nan), np.zeros(n_samples, dtype=int)
    alike = Colouring(("",), first, nowhere, (0.0, 0.0))
    counted = Counter(labels or ())
    if labels is None or len(counted) < 2:
        return alike
    if len(counted) > GROUPS:
        numbers = np.array([_number(label) for label in labels])
        known = np.isfinite(numbers)
        if known.mean() > 0.8:
            low, high = float(numbers[known].min()), float(numbers[known].max())
            return Colouring((), first, (numbers - low) / ((high - low) or 1.0), (low, high))
    ordered = sorted(counted, key=lambda label: (-counted[label], label))
    groups = (*ordered[: GROUPS - 1], OTHERS)
    if len(ordered) <= GROUPS:
        groups = tuple(sorted(ordered))
    elif sum(counted[label] for label in groups[:-1]) < FEW * n_samples:
        return alike
    number = {label: i for i, label in enumerate(groups)}
    group = np.array([number.get(label, len(groups) - 1) for label in labels])
    return Colouring(groups, group, nowhere, (0.0, 0.0))


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.nan


def even_rows(n_samples: int, most: int) -> np.ndarray:
    """Return the rows to draw: all, or so many at even distances."""
    if n_samples <= most:
        return np.arange(n_samples)
    return np.unique(np.linspace(0, n_samples - 1, most).round().astype(int))


def component_name(result: Result, j: int) -> str:
    """Return the number of a component and its strongest feature."""
    return f"{j + 1}. {words.plain(result.names(j)[0], 24)}"
