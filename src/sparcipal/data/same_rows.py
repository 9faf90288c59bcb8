"""Checks that moments and products come from the same rows; a source may change between passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics.margins import TINY, few, summed
from .moments import Moments
from .products import Gram, Strip


def check_same_rows(moments: Moments, gram: Gram, names: tuple[str, ...] | None = None) -> None:
    """Refuse products of other rows than those of the moments, as far as the sums can tell.

    Means and variances of the chosen features are compared: exactly where both are sums of
    integers, otherwise within the rounding of both.
    """
    if gram.n_samples != moments.n_samples:
        raise ValueError(
            f"moments are of {moments.n_samples} rows, products of {gram.n_samples}; both must "
            "have seen all rows once"
        )
    before, now = spread_of(moments, gram.columns), _of_gram(gram)
    if moments.exact and gram.exact:
        squares = moments.squares[gram.columns]
        differs = moments.sums[gram.columns] != gram.sums
        differs |= squares != np.diagonal(gram.second)
    else:
        # sums that have overflowed cannot be compared and count as equal
        with np.errstate(invalid="ignore", over="ignore"):
            differs = np.abs(before.mean - now.mean) > before.mean_error + now.mean_error
            differs |= np.abs(before.variance - now.variance) > before.error + now.error
    _refuse(differs, gram.columns, before, now, names)


def check_same_columns(
    moments: Moments, strip: Strip, names: tuple[str, ...] | None = None
) -> None:
    """Refuse a strip of other rows than those of the moments, as far as the sums can tell."""
    every = np.arange(moments.n_features)
    before, factor = spread_of(moments, every), strip.factor
    own = _rounded(strip.weight, strip.sums, strip.mass, strip.mass, strip.n_samples)
    mean, off = own.mean / factor + strip.shift, own.mean_error / factor
    now = Spread(mean, before.variance, off + few() * np.abs(strip.shift), before.error)
    if strip.n_samples != moments.n_samples:
        raise ValueError(
            f"there were {moments.n_samples} rows of positive weight before, and are "
            f"{strip.n_samples} now; a source of blocks must give the same rows each time"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        differs = np.abs(before.mean - now.mean) > before.mean_error + now.mean_error
    _refuse(differs, every, before, now, names)


def _refuse(
    differs: np.ndarray,
    columns: np.ndarray,
    before: Spread,
    now: Spread,
    names: tuple[str, ...] | None,
) -> None:
    """Name the first feature that differs."""
    if differs.any():
        place = int(np.argmax(differs))
        feature = int(columns[place])
        name = f"{feature}" if names is None else f"{feature} ({names[feature]!r})"
        raise ValueError(
            f"feature {name} has {now.words(place)} in a later pass, but had "
            f"{before.words(place)} before; a source of blocks must give the same rows each time"
        )


@dataclass(frozen=True)
class Spread:
    """Means and variances of some columns, and how far they may be from exact arithmetic."""

    mean: np.ndarray
    variance: np.ndarray
    mean_error: np.ndarray
    error: np.ndarray

    def words(self, place: int) -> str:
        deviation = np.sqrt(max(self.variance[place], 0.0))
        return f"mean {self.mean[place]:.10g} and standard deviation {deviation:.10g}"


def spread_of(moments: Moments, columns: np.ndarray) -> Spread:
    """Return means and variances of some columns by their moments."""
    sums, squares = moments.sums[columns], moments.squares[columns]
    if moments.exact:
        return _exact(moments.n_samples, sums, squares)
    kept = moments.arrays()
    mass, shift, depth = kept["mass"][columns], kept["shift"][columns], int(kept["rows"][2])
    return _moved(_rounded(moments.weight, sums, squares, mass, depth), shift, 0)


def _of_gram(gram: Gram) -> Spread:
    squares = np.diagonal(gram.second)
    if gram.exact:
        return _exact(gram.n_samples, gram.sums, squares)
    shift = np.zeros(gram.columns.size) if gram.shift is None else gram.shift
    spread = _rounded(gram.weight, gram.sums, squares, squares, gram.depth)
    return _moved(spread, shift, -gram.exponent)


def _exact(n: int, sums: np.ndarray, squares: np.ndarray) -> Spread:
    """Compute the spread from sums of integers."""
    first, second = sums.astype(object), squares.astype(object)
    mean = np.asarray(first / max(n, 1), dtype=np.float64)
    variance = np.asarray((n * second - first * first) / max(n * n, 1), dtype=np.float64)
    return Spread(mean, variance, few() * np.abs(mean), few() * variance)


def _rounded(
    weight: float, sums: np.ndarray, squares: np.ndarray, mass: np.ndarray, depth: int
) -> Spread:
    """Compute the spread from rounded sums; `mass` bounds all partial sums of squares."""
    mean = sums / weight
    size = (mass + TINY) / weight + TINY  # TINY covers squares that underflow
    relative = summed(depth)
    return Spread(mean, squares / weight - mean * mean, relative * np.sqrt(size), relative * size)


def _moved(spread: Spread, shift: np.ndarray, exponent: int) -> Spread:
    """Return the spread of the columns times 2**exponent plus `shift`."""
    mean = np.ldexp(spread.mean, exponent) + shift
    return Spread(
        mean,
        np.ldexp(spread.variance, 2 * exponent),
        np.ldexp(spread.mean_error, exponent) + few() * (np.abs(mean) + np.abs(shift)),
        np.ldexp(spread.error, 2 * exponent),
    )
