"""Penalised methods search here for the penalty at which they have s nonzeros.

The number of nonzeros falls as the penalty grows, but in jumps and not always monotonically, so a
cardinality may be out of reach. Then the nearest solution with more nonzeros is cut to size, and a
note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .methods.threshold import truncate


def check_penalty(penalty: float | None) -> None:
    """Refuse a penalty that is no fraction of the smallest penalty that leaves no feature."""
    if penalty is not None and not 0 <= penalty < 1:
        raise ValueError(
            f"penalty={penalty!r} must lie in [0, 1): it is a fraction of the smallest penalty "
            "that leaves no feature at all; leave it out to have it searched for the cardinality"
        )


def reach(
    solve: Callable[[float], np.ndarray],
    s: int,
    nonnegative: bool,
    name: str,
    *,
    penalty: float | None = None,
    max_solves: int = 40,
) -> tuple[np.ndarray, str]:
    """Return a unit vector with at most s nonzeros, and a note when exactly s were not reached.

    `solve(fraction)` is the method's vector at a penalty, given as a fraction of the one that
    leaves no feature. With `penalty` given there is no search.
    """
    if penalty is not None:
        return _fixed(solve, s, nonnegative, name, penalty)
    low, high = 0.0, 1.0
    richer: tuple[float, np.ndarray] | None = None
    poorer: tuple[float, np.ndarray] | None = None
    for _ in range(max_solves):
        middle = (low + high) / 2
        x = solve(middle)
        count = np.count_nonzero(x)
        if count == s:
            return x / np.linalg.norm(x), ""
        if count > s:
            low, richer = middle, (middle, x)
        else:
            high = middle
            poorer = (middle, x) if count else poorer
        if high - low < 1e-7:
            break
    if richer is None:
        richer = (0.0, solve(0.0))
    return _nearest(richer, poorer, s, nonnegative, name)


def _fixed(
    solve: Callable[[float], np.ndarray], s: int, nonnegative: bool, name: str, penalty: float
) -> tuple[np.ndarray, str]:
    """Return the solution at the given penalty, cut to s nonzeros, and a note on their number."""
    x = solve(penalty)
    count = int(np.count_nonzero(x))
    if count == 0:
        raise ValueError(
            f"penalty={penalty} leaves no feature in the {name} component; take one of at most "
            f"{_largest(solve, penalty):.4g}, or leave it out to have it searched for the "
            "cardinality"
        )
    note = fewer(name, penalty, count, s)
    if count > s:
        note = f"{name} at penalty={penalty:g} gives {count} nonzeros, cut to the {s} largest"
    return truncate(x[:, None], s, nonnegative)[:, 0], note


def fewer(name: str, penalty: float, count: int, s: int) -> str:
    """Return a note on a component with fewer nonzeros than allowed, at a given penalty; empty if
    it has them all."""
    if count >= s:
        return ""
    remedy = "; a smaller penalty may give more" if penalty > 0 else ""
    return f"{name} at penalty={penalty:g} gives {count} of the {s} nonzeros allowed{remedy}"


def unfinished(name: str, steps: Sequence[int], max_iter: int) -> str:
    """Return a note if an iteration was cut off, otherwise an empty one.

    `steps` has the number of steps that was taken at each penalty.
    """
    stopped = sum(n_iter >= max_iter for n_iter in steps)
    if not stopped:
        return ""
    tried = f" at {stopped} of the {len(steps)} penalties tried" if len(steps) > 1 else ""
    return f"{name} stopped after max_iter={max_iter} steps{tried}"


def _largest(solve: Callable[[float], np.ndarray], empty: float) -> float:
    """Return about the largest penalty that leaves a feature; `empty` is one that leaves none."""
    low, high = 0.0, empty
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if np.any(solve(middle)) else (low, middle)
        if high < 1e-6:
            break
    return float(np.floor(low * 1e3) / 1e3) if low >= 1e-2 else low


def _nearest(
    richer: tuple[float, np.ndarray],
    poorer: tuple[float, np.ndarray] | None,
    s: int,
    nonnegative: bool,
    name: str,
) -> tuple[np.ndarray, str]:
    """Return the solution with more nonzeros, cut to size, and a note on the sizes within reach.

    `richer` and `poorer` are the nearest penalties found with more and with fewer than s nonzeros,
    each with its solution; even without penalty `richer` may have fewer.
    """
    above = np.count_nonzero(richer[1])
    if above >= s:
        below = "none" if poorer is None else str(np.count_nonzero(poorer[1]))
        note = (
            f"{name} reaches no component of exactly {s} nonzero{'' if s == 1 else 's'} "
            f"({above} at penalty {richer[0]:.6g}, {below} above it): cut to the {s} largest"
        )
        return truncate(richer[1][:, None], s, nonnegative)[:, 0], note if above > s else ""
    note = f"{name} reaches no more than {above} nonzeros of the {s} allowed, even without penalty"
    return truncate(richer[1][:, None], s, nonnegative)[:, 0], note
