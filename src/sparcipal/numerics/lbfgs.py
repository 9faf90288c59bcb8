"""Limited-memory BFGS for smooth functions, with variables that must not be negative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import get_blas_funcs

MEMORY = 15  # number of steps stored
TINY = 1e-30  # well inside the range of single precision

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]


def minimise(
    evaluate: Evaluate,
    start: np.ndarray,
    max_iter: int,
    stop: Callable[[list[float]], bool],
    *,
    nonnegative: int = 0,
    memory_size: int = MEMORY,
) -> np.ndarray:
    """Return the last point accepted; the last `nonnegative` variables stay at or above zero.

    All vectors have the precision of `start`, which is overwritten; `evaluate` gives a new gradient
    every time. `stop` sees the history of function values after every step. Variables at zero
    whose gradient points outwards rest for that step.
    """
    bounded = start.size - nonnegative
    y = start
    np.maximum(y[bounded:], 0.0, out=y[bounded:])
    value, gradient = evaluate(y)
    history = [value]
    memory = _Memory(memory_size, start.dtype)
    for _ in range(max_iter):
        resting = (y[bounded:] <= 0.0) & (gradient[bounded:] > 0.0)
        direction = memory.direction(gradient, resting, bounded)
        slope = float(gradient @ direction)
        if not slope < 0.0:
            memory = _Memory(memory_size, start.dtype)
            direction = memory.direction(gradient, resting, bounded)
            slope = float(gradient @ direction)
            if not slope < 0.0:
                break
        found = _line_search(evaluate, y, value, slope, direction, bounded)
        if found is None:
            break
        new, value, new_gradient = found
        # The differences overwrite the old vectors, which are long.
        memory.add(np.subtract(new, y, out=y), np.subtract(new_gradient, gradient, out=gradient))
        y, gradient = new, new_gradient
        history.append(value)
        if stop(history):
            break
    return y


def slow(history: list[float], steps: int, least: float) -> bool:
    """Return whether the last so many steps have gained less than `least` together."""
    return len(history) > steps and history[-1 - steps] - history[-1] < least


class _Memory:
    """The last steps and gradient changes."""

    def __init__(self, size: int, kind: np.dtype) -> None:
        self.size = size
        (self._axpy,) = get_blas_funcs(["axpy"], dtype=kind)
        self.steps: list[np.ndarray] = []
        self.changes: list[np.ndarray] = []
        self.inverses: list[float] = []

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        curvature = float(step @ change)
        size = np.sqrt(float(step @ step) * float(change @ change))
        if curvature > max(1e-12 * size, TINY):
            if len(self.steps) == self.size:
                del self.steps[0], self.changes[0], self.inverses[0]
            self.steps.append(step)
            self.changes.append(change)
            self.inverses.append(1.0 / curvature)

    def direction(self, gradient: np.ndarray, resting: np.ndarray, bounded: int) -> np.ndarray:
        q = -gradient
        q[bounded:][resting] = 0.0
        if not self.steps:
            # The curvature is still unknown, so the first step is short.
            q *= 0.01 / max(float(np.linalg.norm(q)), TINY)
            return q
        factors = []
        for step, change, inverse in self._newest_first():
            factor = inverse * float(step @ q)
            q = self._axpy(change, q, a=-factor)  # in place, without a temporary
            factors.append(factor)
        last = self.changes[-1]
        q *= 1.0 / (self.inverses[-1] * float(last @ last))
        for (step, change, inverse), factor in zip(
            reversed(list(self._newest_first())), reversed(factors)
        ):
            q = self._axpy(step, q, a=factor - inverse * float(change @ q))
        q[bounded:][resting] = 0.0
        return q

    def _newest_first(self) -> zip:
        return zip(reversed(self.steps), reversed(self.changes), reversed(self.inverses))


def _line_search(
    evaluate: Evaluate,
    y: np.ndarray,
    value: float,
    slope: float,
    direction: np.ndarray,
    bounded: int,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Find a step that satisfies the Wolfe conditions, or any decrease after 12 trials."""
    low, high, length = 0.0, np.inf, 1.0
    decrease = None
    for _ in range(12):
        new = y + length * direction
        np.maximum(new[bounded:], 0.0, out=new[bounded:])
        new_value, gradient = evaluate(new)
        if not np.isfinite(new_value) or new_value > value + 1e-4 * length * slope:
            high = length
            length = (
                0.5 * (low + high) if low > 0.0 else _backtrack(length, value, slope, new_value)
            )
            continue
        decrease = (new, new_value, gradient)
        if float(gradient @ direction) >= 0.9 * slope:
            return decrease
        low = length
        length = 2.0 * length if np.isinf(high) else 0.5 * (low + high)
    return decrease


def _backtrack(length: float, value: float, slope: float, new_value: float) -> float:
    """Return the minimum of the interpolating parabola, within [0.1, 0.6] of the length."""
    if not np.isfinite(new_value):
        return 0.1 * length
    curve = new_value - value - slope * length
    best = -slope * length * length / (2.0 * curve) if curve > 0.0 else length
    return min(max(best, 0.1 * length), 0.6 * length)
