"""Checks that sums could be those of some rows: what contradicts itself was damaged, or made up.

`Moments` and `Gram` come from files and from other engines. A column that is said to be constant
would be left out of every component, whatever its squares say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.margins import TINY, few, sum_of, summed
from .moments import Moments
from .products import ROWS, Gram
from .same_rows import check_same_rows, spread_of

LARGEST = 2.0**53  # the range of a column distinguishes integers below
EXPONENT = 1100  # beyond that of any number in double precision


def check_consistent(moments: Moments, gram: Gram) -> None:
    """Refuse moments and products that no rows have, with what is wrong with them."""
    _check_moments(moments)
    _check_gram(gram, moments)
    check_same_rows(moments, gram)


def _refuse(wrong: np.ndarray, what: str) -> None:
    """Raise ValueError with the first column that is wrong."""
    if wrong.any():
        raise ValueError(f"the sums contradict themselves: column {int(np.argmax(wrong))} {what}")


def _check_moments(moments: Moments) -> None:
    low, high, n = moments.low, moments.high, moments.n_samples
    if n < 1 or not moments.n_features:
        raise ValueError("there are no rows in the sums, or no columns")
    if moments.weighted and (moments.exact or not 0.0 < moments.weight < np.inf):
        raise ValueError(f"the sums contradict themselves: the rows weigh {moments.weight}")
    _refuse(~(np.isfinite(low) & np.isfinite(high) & (low <= high)), "has no range of finite size")
    if moments.exact:
        _check_integers(moments)
    else:
        _check_rounded(moments)


def _check_integers(moments: Moments) -> None:
    low, high, n = moments.low, moments.high, moments.n_samples
    _refuse((np.rint(low) != low) | (np.rint(high) != high), "holds integers between others")
    reach = max(int(moments.squares.max()), int(np.abs(moments.sums).max()), n)
    kind: Any = np.int64 if reach < 2**31 else object
    sums, squares = moments.sums.astype(kind), moments.squares.astype(kind)
    spread = n * squares - sums * sums
    _refuse(np.asarray(spread < 0, dtype=bool), "has a sum of squares that is too small")
    still = (low == high) & (np.abs(high) < LARGEST) & np.asarray(spread != 0, dtype=bool)
    _refuse(still, "is said to be constant, but varies by its sums")
    total = np.asarray(sums, dtype=np.float64)
    slack = 2 * few() * n * np.maximum(np.abs(low), np.abs(high))
    above, below = total - n * low + slack, n * high - total + slack
    _refuse((above < 0) | (below < 0), "has a sum beyond its smallest and largest values")
    wide = np.asarray(spread, dtype=np.float64) > above * below * (1 + 2 * few())
    _refuse(wide, "varies more than its smallest and largest values allow")


def _check_rounded(moments: Moments) -> None:
    low, high, n, weight = moments.low, moments.high, moments.n_samples, moments.weight
    kept = moments.arrays()
    shift, mass, squares = kept["shift"], kept["mass"], moments.squares
    numbers = np.stack([moments.sums, squares, shift, mass])
    _refuse(~np.isfinite(numbers).all(axis=0), "has sums that are not finite")
    if int(kept["rows"][2]) < 1:
        raise ValueError("the sums contradict themselves: no number was added to another")
    _refuse(mass * (1 + 1e-6) + TINY < squares, "has squares beyond what bounds them")
    with np.errstate(over="ignore", invalid="ignore"):
        own = spread_of(moments, np.arange(moments.n_features))
        size = np.maximum(np.abs(low), np.abs(high))
        slack = own.mean_error + few() * size
        above, below = own.mean - low + slack, high - own.mean + slack
        _refuse((above < 0) | (below < 0), "has a mean beyond its smallest and largest values")
        wide = own.variance > above * below + own.error
        _refuse(wide, "varies more than its smallest and largest values allow")
        _refuse(own.variance < -own.error, "has a sum of squares that is too small")
        # One value only: sums about a number near it hold nothing but its rounding.
        off = sum_of(16 * (n + 8)) * size + TINY
        varies = (np.abs(moments.sums) > weight * off) | (squares > weight * off * off + TINY)
    _refuse((low == high) & varies, "is said to be constant, but varies by its sums")


def _check_gram(gram: Gram, moments: Moments) -> None:
    m, columns = gram.columns.size, gram.columns
    if not m or columns[0] < 0 or columns[-1] >= moments.n_features:
        raise ValueError(f"products of columns that are not in 0..{moments.n_features - 1}")
    if gram.depth < 0 or abs(gram.exponent) > EXPONENT:
        raise ValueError("the sums contradict themselves: products of impossible size")
    apart = abs(gram.weight - moments.weight) > 1e-9 * moments.weight
    if apart and gram.n_samples == moments.n_samples:
        raise ValueError(
            f"the sums contradict themselves: rows of weight {moments.weight:.10g} in the moments, "
            f"{gram.weight:.10g} in the products"
        )
    shift = np.zeros(m) if gram.shift is None else gram.shift
    sums, diagonal = (np.asarray(a, np.float64) for a in (gram.sums, np.diagonal(gram.second)))
    fine = np.isfinite(sums) & np.isfinite(shift) & np.isfinite(diagonal) & (diagonal >= 0)
    if not fine.all():
        place = int(columns[np.argmin(fine)])
        raise ValueError(f"the products of column {place} are not those of finite numbers")
    # of what underflows nothing can be said
    root = np.sqrt(diagonal + TINY) * (1 + 1e-6 + summed(gram.depth))
    for start in range(0, m, ROWS):  # some rows at a time, so that no second matrix is held
        part = gram.second[start : start + ROWS]
        wrong = part != gram.second[:, start : start + ROWS].T
        size, most = np.abs(part.astype(np.float64)), np.outer(root[start : start + ROWS], root)
        wrong |= ~(size <= most)  # Cauchy and Schwarz
        if wrong.any():
            i, j = (int(place[0]) for place in np.nonzero(wrong))
            raise ValueError(
                f"the sums contradict themselves: products of columns {int(columns[start + i])} "
                f"and {int(columns[j])} are larger than their squares allow, or not symmetric"
            )
