"""Sentences on what was set aside, renamed or converted: joined, and told once.

Python shows a warning once per line of code, but forgets that it did wherever filters change, as in
the loops of scikit-learn: a grid search over frames would show one sentence hundreds of times.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

ASIDE = "set aside, not fitted"
SHOWN = 8  # columns that a sentence names
CODES = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)  # of missing entries, in files
LOOKED_THROUGH = 1 << 21  # entries of a table that is searched for such codes
EQUAL = 1e-12  # what rounding leaves of 1 minus the squared correlation of equal features
TRENDING = 30  # rows from which on a trend can be told
# Squared steps from row to row over twice the squared deviations from the mean, times the number of
# rows: below 8 for four of five random walks, about the number of rows where they have no order.
TREND = 8.0
_OWN = ("sparcipal", "sklearn.callback")  # files that are no use as the place of a warning
_told: set[str] = set()


def tell(notes: tuple[str, ...]) -> None:
    """Warn of what was set aside, at the line that called the package; the same words once."""
    text = "; ".join(notes)
    if not text or (text in _told and _shown_once(text)):
        return
    _told.add(text)
    warnings.warn(text, UserWarning, stacklevel=_outside())


def listed(entries: list[str], of: int | None = None) -> str:
    """Return the first of `of` entries (of those given), and how many more there are."""
    of = len(entries) if of is None else of
    more = f" and {of - SHOWN} more" if of > SHOWN else ""
    return ", ".join(entries[:SHOWN]) + more


def on_constants(constant: np.ndarray, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Name the columns that do not vary, one truth value per column, in a sentence."""
    still = np.flatnonzero(constant)
    if not still.size or still.size == constant.size:
        return ()
    called = [repr(names[j]) if names is not None else f"x{j}" for j in still[:SHOWN]]
    return (f"{ASIDE}: {listed(called, still.size)} (constant)",)


def on_copies(
    pairs: np.ndarray, apart: np.ndarray, alike: float, names: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Say which features, pairs (m, 2) with the closest first, are copies of each other, or nearly
    so: those that a chain of pairs joins are named together.

    `apart` is 1 minus the squared correlation of each pair, `alike` the least correlation.
    """
    if not len(pairs):
        return ()
    first: dict[int, int] = {}  # the pair of each feature that is closest
    for i, pair in enumerate(pairs.tolist()):
        for feature in pair:
            first.setdefault(feature, i)
    group: dict[int, list[list[int]]] = {}  # of each feature: lists of features that are equal
    for (a, b), distance in zip(pairs.tolist(), apart.tolist()):
        one, other = group.get(a, [[a]]), group.get(b, [[b]])
        if one is other:
            continue
        # pairs that are equal come first: both groups are then one list each
        joined = [one[0] + other[0]] if distance <= EQUAL else one + other
        joined.sort(key=lambda equals: min(first[feature] for feature in equals))
        group.update({feature: joined for equals in joined for feature in equals})
    distinct = {id(group[a]): group[a] for a in pairs[:, 0].tolist()}
    groups = list(distinct.values())

    def called(equals: list[int]) -> str:
        shown = [f"x{j}" if names is None else repr(names[j]) for j in equals[:SHOWN]]
        more = [f"{len(equals) - SHOWN} more"] if len(equals) > SHOWN else []
        return " = ".join([*shown, *more])

    told = [listed([*map(called, found)]) for found in groups[:SHOWN]]
    more = f"; and {len(groups) - SHOWN} more groups" if len(groups) > SHOWN else ""
    return (
        f"copies of features that are used, or nearly so (correlations of {alike:g} or more, the "
        f"closest first, = where they are 1): {'; '.join(told)}{more}",
    )


def on_codes(X: Any, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Point out codes of missing entries, as -99 and 999, that lie far from all other entries.

    Entries that are NaN are missing already, and say nothing.
    """
    if sp.issparse(X) or X.size > LOOKED_THROUGH or X.dtype.kind not in "fiu":
        return ()
    told = []
    least, most = np.fmin.reduce(X), np.fmax.reduce(X)
    if least.dtype.kind == "f":  # half precision has no room for the longest codes
        least, most = least.astype(np.float64), most.astype(np.float64)
    for code in CODES:
        for j in np.flatnonzero(((least == code) | (most == code)) & (least < most)):
            here = X[:, j] == code
            others = X[~here, j]
            low, high = float(np.fmin.reduce(others)), float(np.fmax.reduce(others))
            if low < high and not 3 * low - 2 * high <= code <= 3 * high - 2 * low:
                told.append((code, int(j), int(here.sum())))
    found = []
    for code in dict.fromkeys(code for code, _, _ in told):
        own = [(j, count) for c, j, count in told if c == code]
        times = sum(count for _, count in own)
        if times == 1:
            continue  # an entry like others
        shown = listed([repr(names[j]) if names is not None else f"x{j}" for j, _ in own])
        found.append(
            f"{code} is far from all other entries of {shown} (there {times} times); if it stands "
            f"for a missing entry, read the file with na_values={code}"
        )
    return tuple(found)


def on_trends(columns: np.ndarray) -> tuple[str, ...]:
    """Say that at least half of these columns (n, m) wander from row to row, as prices do."""
    if columns.size and np.isnan(columns).any():
        wander = np.concatenate([_wandering(x[~np.isnan(x)][:, None]) for x in columns.T])
    else:
        wander = _wandering(columns)
    if 2 * wander.sum() < max(wander.size, 1):
        return ()
    return (
        "the features trend from row to row, as prices and other levels do, and components show "
        "common trends; if rows are moments in time and you ask what moves together, take the "
        "changes (X.pct_change(), X.diff())",
    )


def _wandering(columns: np.ndarray) -> np.ndarray:
    """Return which of these columns, without gaps, change less from row to row than they vary."""
    n, m = columns.shape
    if n < TRENDING:
        return np.zeros(m, dtype=bool)
    largest = np.abs(columns).max(axis=0)
    centred = columns / np.where(largest > 0, largest, 1.0)
    centred -= centred.mean(axis=0)
    spread = np.einsum("ij,ij->j", centred, centred)
    step = np.diff(centred, axis=0)
    change = n * np.einsum("ij,ij->j", step, step)
    wander: np.ndarray = (change > 0) & (change <= 2 * TREND * spread)
    return wander


def joined(notes: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Add sentences; columns that are set aside go into the sentence that is there on others."""
    out = list(notes)
    for note in more:
        start, colon, columns = note.partition(": ")
        at = next((i for i, n in enumerate(out) if n.startswith(start + colon)), None)
        if at is None or start != ASIDE:
            out.append(note)
        else:
            out[at] = f"{out[at]}, {columns}"
    return tuple(out)


def _shown_once(text: str) -> bool:
    """Return whether the user has not asked for every warning, or for errors instead."""
    for action, message, category, _, _ in warnings.filters:
        if issubclass(UserWarning, category) and (message is None or message.match(text)):
            return action not in ("always", "all", "error")
    return True


def _outside() -> int:
    """Return how far up the caller of the package is, from the function that warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
        level, frame = level + 1, frame.f_back
    return level
