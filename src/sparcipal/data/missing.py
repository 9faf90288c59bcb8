"""Entries that are missing: rows left out, entries filled, or covariances of what is there.

Means are sums without rounding divided once, so that a checker comes to the same numbers whatever
the order of the rows in memory. docs/missing.rst states what each rule does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics import margins
from ..numerics.margins import power_of_two
from ..problem.covariance import DENSE_LIMIT
from .checks import FILLED
from .table import Table

RULES = ("error", "rows", "mean", "median", "pairwise")
HIDDEN = 5e-7  # the part of a variance that rounding may hide; the checker's limit is 1e-6
LEAST = 2  # rows that must be left, and rows that a pair of features must share


@dataclass(frozen=True, eq=False)
class Gaps:
    """What was done about entries that were missing, and is to be done in new samples."""

    rule: str
    entries: int = 0
    rows: int = 0  # left out
    fill: np.ndarray | None = None  # what stands for a missing entry, by feature

    def words(self, n_rows: int) -> str:
        """Say it in a sentence."""
        what = f"{self.entries} missing entries"
        if self.rule == "rows":
            return f"{what}: {self.rows} of {n_rows} rows left out"
        if self.rule == "pairwise":
            return f"{what}: covariances of the rows that have both entries"
        return f"{what}: filled with the {self.rule} of their column"

    @property
    def pairs(self) -> bool:
        """Whether covariances are those of pairs; for a table without gaps they are as ever."""
        return self.rule == "pairwise" and self.entries > 0


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Covariances of what is there, moved to the nearest positive semidefinite matrix."""

    matrix: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    moved: float  # the Frobenius norm of what was added
    relative: float  # as a part of the norm of the covariances


def by_rows(rule: str) -> str:
    """Return the rule, where parts of the rows are asked one by one: covariances of pairs have
    none."""
    if rule == "pairwise":
        raise ValueError(
            "missing='pairwise' gives a covariance of all rows, and parts of them are needed; pass "
            "missing='mean', missing='median' or missing='rows'"
        )
    return rule


def for_new_samples(table: Table, rule: str, weights: np.ndarray | None) -> Gaps | None:
    """Return what is to be done about gaps in new samples, after a fit of a table that has none."""
    if rule == "error" or sp.issparse(table.X):
        return None
    return Gaps(rule, fill=_fill(table.X, rule, weights))


def _fill(X: np.ndarray, rule: str, weights: np.ndarray | None) -> np.ndarray | None:
    if rule == "mean":
        return means(X, weights)
    return np.nanmedian(X.astype(np.float64), axis=0) if rule == "median" else None


def without_gaps(
    table: Table, rule: str, weights: np.ndarray | None
) -> tuple[Table, np.ndarray | None, Gaps | None]:
    """Treat what is missing in a table that is finite otherwise; None when nothing is."""
    if table._checked:
        return table, weights, None
    X = table.X
    absent = np.isnan(X)
    _refuse_empty(absent.all(axis=0), table.feature_names)
    count = int(absent.sum())
    if rule == "rows":
        whole = ~absent.any(axis=1)
        if int(whole.sum()) < LEAST:
            raise ValueError(
                f"missing='rows' leaves {int(whole.sum())} of {X.shape[0]} rows; pass {FILLED}"
            )
        gaps = Gaps(rule, count, int((~whole).sum()))
        names, labels = table.sample_names, table.labels
        kept = replace(
            table,
            X=X[whole],
            sample_names=None if names is None else tuple(np.asarray(names, object)[whole]),
            labels=None if labels is None else tuple(np.asarray(labels, object)[whole]),
            moments=None,
            notes=(*table.notes, gaps.words(X.shape[0])),
        )
        return kept._check(), None if weights is None else weights[whole], gaps
    if rule == "pairwise":
        if X.shape[1] > DENSE_LIMIT:
            raise ValueError(
                f"missing='pairwise' takes at most {DENSE_LIMIT} features, X has {X.shape[1]}; "
                "pass missing='mean', or fewer columns"
            )
        gaps = Gaps(rule, count)
        return replace(table, notes=(*table.notes, gaps.words(X.shape[0]))), weights, gaps
    fill = _fill(X, rule, weights)
    gaps = Gaps(rule, count, fill=fill)
    filled = np.where(absent, fill, X)
    notes = (*table.notes, gaps.words(X.shape[0]))
    return replace(table, X=filled, moments=None, notes=notes)._check(), weights, gaps


def means(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the mean of what is there in each column, from a sum that is not rounded."""
    out = np.empty(X.shape[1])
    for j in range(X.shape[1]):
        column = np.asarray(X[:, j], dtype=np.float64)
        there = ~np.isnan(column)
        if weights is None:
            out[j] = math.fsum(column[there]) / int(there.sum())
        else:
            total = math.fsum(weights[there])
            out[j] = math.fsum(weights[there] * column[there]) / total if total else math.nan
    _refuse_empty(np.isnan(out), None)
    return out


def pairwise(
    X: np.ndarray, weights: np.ndarray | None, center: bool, scale: bool, names: Any
) -> Pairwise:
    """Return the covariance of each pair of features over the rows that have both, repaired.

    Deviations are from the mean of all entries of a column that are there.
    """
    there = ~np.isnan(X)
    mean = means(X, weights) if center else np.zeros(X.shape[1])
    away = np.where(there, X - mean, 0.0)
    w = np.ones(X.shape[0]) if weights is None else weights
    mass = there.T.astype(np.float64) @ (there * w[:, None])
    shared = there.T.astype(np.float64) @ there
    _refuse_unshared(shared, names)
    products = (away.T @ (away * w[:, None])) / mass
    products = (products + products.T) / 2
    deviations = np.ones(X.shape[1])
    if scale:
        spread = np.sqrt(np.maximum(np.diagonal(products), 0.0))
        deviations = np.where(spread > 0, spread, 1.0)
        products = products / np.outer(deviations, deviations)
    reach = np.abs(away)
    wrong = margins.pair(X.shape[0]) * (reach.T @ (reach * w[:, None])) / mass
    farthest, off = reach.max(axis=0), margins.pair_mean() * np.nanmax(np.abs(X), axis=0)
    wrong += np.outer(off, farthest) + np.outer(farthest, off) + np.outer(off, off)
    repaired = _nearest(products, wrong / np.outer(deviations, deviations), names)
    unit = power_of_two(float(np.abs(products).max()))  # squares of the norms stay in range
    moved = float(np.linalg.norm((repaired - products) / unit))
    size = float(np.linalg.norm(products / unit))
    return Pairwise(repaired, mean, deviations, moved * unit, moved / size if size else 0.0)


def _refuse_empty(empty: np.ndarray, names: tuple[str, ...] | None) -> None:
    if not empty.any():
        return
    listed = [repr(names[j] if names is not None else f"x{j}") for j in np.flatnonzero(empty)[:6]]
    raise ValueError(
        f"{int(empty.sum())} column(s) without an entry: {', '.join(listed)}; drop them"
    )


def _nearest(products: np.ndarray, wrong: np.ndarray, names: Any) -> np.ndarray:
    """Return the nearest positive semidefinite matrix; `wrong` is what rounding may have done to
    entries.

    Covariances that are definite in the units of each feature stay as they are. A repair is
    rounded beside the largest of them, which hides features of much smaller units.
    """
    spread = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    moving = np.flatnonzero(spread > 0)
    if moving.size == 0:
        return products
    grid, own = np.ix_(moving, moving), np.outer(spread[moving], spread[moving])
    relative = wrong[grid] / own
    far = moving[int(np.argmax(np.diagonal(relative)))]
    if relative.max() > HIDDEN:
        raise ValueError(
            f"missing='pairwise': {_called(names, far)} lies so far from zero, beside the "
            "differences of its entries, that the rounding of its mean hides covariances; subtract "
            "a number near its mean from the column, or pass missing='rows', 'mean' or 'median'"
        )
    least = float(np.linalg.eigvalsh(products[grid] / own)[0])
    doubt = float(np.linalg.norm(relative)) + margins.definite(moving.size)
    if least <= 4 * doubt:
        unit = power_of_two(float(np.abs(products).max()))  # squares of the norms stay in range
        hidden = 4 * float(np.linalg.norm(wrong / unit))
        hidden += margins.repaired(len(products)) * max(float(np.linalg.norm(products / unit)), 1.0)
        small = moving[int(np.argmin(spread[moving]))]
        if hidden > HIDDEN * float(products[small, small] / unit):
            raise ValueError(
                "missing='pairwise': these covariances must be repaired to be positive "
                f"semidefinite, and {_called(names, small)} varies so little beside the largest "
                "columns that rounding hides its part; pass scale=True, missing='rows', 'mean' or "
                "'median', or leave out columns"
            )
    if least > 0:
        return products
    values, vectors = np.linalg.eigh(products)
    repaired = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((repaired + repaired.T) / 2)


def _called(names: Any, j: int) -> str:
    return f"column {j + 1}" if names is None else repr(names[j])


def _refuse_unshared(shared: np.ndarray, names: Any) -> None:
    few = np.argwhere(np.triu(shared) + np.tril(np.full(shared.shape, LEAST), -1) < LEAST)
    if few.size:
        i, j = (int(place) for place in few[0])
        pair = f"{names[i]!r} and {names[j]!r}" if names is not None else f"x{i} and x{j}"
        raise ValueError(
            f"missing='pairwise' needs {LEAST} rows with both entries for every pair of features, "
            f"but {pair} share {int(shared[i, j])}, and so do {len(few) - 1} more pairs few; drop "
            "columns, or pass missing='mean'"
        )
