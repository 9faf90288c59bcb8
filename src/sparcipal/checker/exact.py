"""Exact arithmetic for a replay: enclosures of real numbers, by python-flint.

A ball is a number of 128 bits with a radius that holds every rounding since the data. An
inequality between balls is true only if it holds for all numbers inside, so that whatever is
accepted is a theorem about the data as they stand; no rounding term is needed, and LAPACK is
asked for guesses only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .arithmetic import EPS, Arithmetic, Numbers

try:
    import flint
except ImportError as error:  # pragma: no cover
    raise ImportError(
        'exact arithmetic needs python-flint: pip install "sparcipal[exact]"'
    ) from error

BITS = 128
arb = flint.arb


class Ball(Arithmetic):
    """Real numbers, enclosed."""

    eps = 0.0
    step = EPS
    exact = True
    bytes = 100
    nanoseconds = 20.0  # 5 in products of large matrices, 400 where Python compares

    def running(self) -> AbstractContextManager[Any]:
        return flint.ctx.workprec(BITS)

    def array(self, x: Any) -> np.ndarray:
        return np.asarray(_balls(np.asarray(x, dtype=object)), dtype=object)

    def number(self, x: Any) -> Any:
        return _ball(x)

    def floats(self, x: Numbers) -> np.ndarray:
        return np.asarray(np.asarray(x, dtype=object), dtype=np.float64)

    def upper(self, x: Numbers) -> float:
        top = _ball(x).upper()
        out = float(top)
        return out if not arb(out) < top else float(np.nextafter(out, np.inf))

    def high(self, x: Any) -> Any:
        return _ball(x).upper()

    def finite(self, x: Numbers) -> bool:
        return all(_ball(entry).is_finite() for entry in np.asarray(x, dtype=object).flat)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        left, right = np.atleast_2d(a), b[:, None] if b.ndim == 1 else b
        shape = a.shape[:-1] + b.shape[1:]
        if not (left.size and right.size):
            return self.zeros(*shape)
        product = flint.arb_mat(left.tolist()) * flint.arb_mat(right.tolist())
        return _filled(product.entries(), shape)

    def solve(self, S: np.ndarray, B: np.ndarray) -> np.ndarray:
        solution = flint.arb_mat(S.tolist()).solve(flint.arb_mat(B.tolist()))
        return _filled(solution.entries(), B.shape)

    def sqrt(self, x: Numbers) -> Numbers:
        return _roots(x)

    def exp(self, x: Numbers) -> Numbers:
        return _exponentials(x)

    def maximum(self, a: Numbers, b: Numbers) -> Numbers:
        return _larger(a, b)

    def minimum(self, a: Numbers, b: Numbers) -> Numbers:
        return _smaller(a, b)

    def top(self, values: np.ndarray, q: int) -> np.ndarray:
        """Return enclosures of the q largest, whichever entries they are."""
        n = values.shape[-1]
        q = min(q, n)
        out = np.empty((*values.shape[:-1], q), dtype=object)
        if out.size == 0:
            return out
        near = self.floats(values)
        off = 1.001 * np.asarray(_radii(values), dtype=np.float64) + 8 * EPS * np.abs(near) + 1e-300
        for row, low, high, into in zip(
            values.reshape(-1, n),
            (near - off).reshape(-1, n),
            (near + off).reshape(-1, n),
            out.reshape(-1, q),
        ):
            # What is not clearly below the q-th largest is compared as it stands.
            level = np.partition(low, n - q)[n - q]
            among = [_ball(x) for x in row[~(high < level)]]
            if any(x.is_nan() for x in among):
                into[:] = arb("nan")
                continue
            highs = sorted((x.upper() for x in among), reverse=True)
            lows = sorted((x.lower() for x in among), reverse=True)
            into[:] = [low.union(high) for low, high in zip(lows[:q], highs[:q])]
        return out

    def psd(self, M: np.ndarray, blur: Numbers = 0.0) -> bool:
        """Prove it by a factor L from LAPACK with its residual, else by an elimination of balls.

        M = delta I + LL' + E, and the largest row sum of |E| is at most delta.
        """
        n = M.shape[0]
        M = M - blur * self.eye(n)
        guess = self.floats(M)
        if not np.isfinite(guess).all():
            return False
        step = (n + 2) * EPS * float(np.abs(np.diagonal(guess)).sum())
        if step > 0 and not _factor(guess + 4 * step * np.eye(n)).size:
            return False  # far from positive semidefinite, whatever the rounding
        for delta in (step / 2, step / 16):
            L = _factor(guess - delta * np.eye(n))
            if L.size:
                product = self.matmul(self.array(L), self.array(L.T))
                if self.at_most(abs(M - delta * self.eye(n) - product).sum(axis=1), delta):
                    return True
        return bool(self.eliminates(M[None])[0])


def _factor(matrix: np.ndarray) -> np.ndarray:
    """Return a Cholesky factor; an empty array if LAPACK finds none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.empty(0)


def _filled(entries: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out.reshape(shape)


def _ball(x: Any) -> Any:
    return x if isinstance(x, arb) else arb(x)


def _root(x: Any) -> Any:
    """Return the square root of what is not negative of x."""
    x = _ball(x)
    if x >= 0:
        return x.sqrt()
    return arb(0).union(x.upper().max(arb(0)).sqrt())


_balls = np.frompyfunc(_ball, 1, 1)
_radii = np.frompyfunc(lambda x: _ball(x).rad(), 1, 1)
_roots = np.frompyfunc(_root, 1, 1)
_exponentials = np.frompyfunc(lambda x: _ball(x).exp(), 1, 1)
_larger = np.frompyfunc(lambda a, b: _ball(a).max(_ball(b)), 2, 1)
_smaller = np.frompyfunc(lambda a, b: _ball(a).min(_ball(b)), 2, 1)


def power_of_two(exponent: int) -> Any:
    return arb(2) ** exponent
