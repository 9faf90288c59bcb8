"""The arithmetic of a replay: one code for the proofs, two kinds of numbers.

`Float` computes with float64, and every proof adds its rounding terms (docs/methods/rounding.rst).
`exact.Ball` computes with enclosures of real numbers; there `eps` is zero, so that each rounding
term vanishes. Matrices are NumPy arrays in both: float64, or objects that are balls.

Code that serves both keeps to five habits. Numbers of a record become numbers of the arithmetic
(`ar.number`, `ar.array`) before they are added or multiplied: Python would round. `a <= b` between
numbers or arrays is true only if it is proved, and its negation proves nothing. Maxima, square
roots, products of matrices and sorted values go through the arithmetic. Rounding terms are
multiples of `ar.eps`. What LAPACK says of `ar.floats(M)` is a guess and decides nothing but where
to look.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .margins import term

EPS = 2.0**-52
# No bound in units is proved to be less, and no pad may be: docs/methods/rounding.rst, "Underflow".
LEAST = 2.0**-400
Numbers = Any  # a float or a ball, or an array of them
LEAST_NORMAL = 2.0**-1022


def at_least(number: float, unit: float) -> float:
    """Return number * unit, a power of two, rounded up where it is denormal and not exact."""
    product = number * unit
    return math.nextafter(product, math.inf) if abs(product) < LEAST_NORMAL else product


class Arithmetic(ABC):
    """What a replay needs of its numbers."""

    eps: float
    exact: bool
    step: float  # by multiples of this much, relatively, guesses are raised until they are proved
    bytes: int  # of one number
    nanoseconds: float  # of one operation, about

    def running(self) -> AbstractContextManager[Any]:
        """Return the context in which numbers of this kind are computed with."""
        return nullcontext()

    # --- numbers and arrays ---

    @abstractmethod
    def array(self, x: Any) -> np.ndarray:
        """Return stored numbers, exactly."""

    @abstractmethod
    def number(self, x: Any) -> Any:
        """Return one stored number, exactly."""

    @abstractmethod
    def floats(self, x: Numbers) -> np.ndarray:
        """Return approximations in float64, for guesses only."""

    @abstractmethod
    def upper(self, x: Numbers) -> float:
        """Return a float that is at least x: what a claim is compared with."""

    @abstractmethod
    def high(self, x: Any) -> Any:
        """Return a number without a radius that is at least x; such numbers can be sorted."""

    @abstractmethod
    def finite(self, x: Numbers) -> bool:
        """Return whether all are numbers: neither infinite nor nan."""

    @abstractmethod
    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def solve(self, S: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the solution of S Y = B."""

    @abstractmethod
    def sqrt(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def exp(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def maximum(self, a: Numbers, b: Numbers) -> Numbers: ...

    @abstractmethod
    def minimum(self, a: Numbers, b: Numbers) -> Numbers: ...

    @abstractmethod
    def top(self, values: np.ndarray, q: int) -> np.ndarray:
        """Return upper bounds of the q largest along the last axis, the largest first; fewer if
        there are fewer."""

    def zeros(self, *shape: int) -> np.ndarray:
        return self.array(np.zeros(shape))

    def eye(self, n: int) -> np.ndarray:
        return self.array(np.eye(n))

    def at_most(self, a: Numbers, b: Numbers) -> bool:
        """Return whether a <= b is proved, everywhere."""
        return bool(np.all(np.asarray(a <= b, dtype=bool)))

    def size(self, x: Numbers, nonnegative: bool = False) -> Numbers:
        """Return what pairs can be charged: |x|, or the positive part if loadings have one sign."""
        return self.maximum(x, 0.0) if nonnegative else abs(x)

    def top_sum(self, values: np.ndarray, q: int) -> Numbers:
        """Return at least the sum of the q largest along the last axis, each off by at most 8 eps
        of itself."""
        chosen = self.top(values, max(q, 0))
        total = chosen.sum(axis=-1)
        return total + term("charges", q) * self.eps * abs(chosen).sum(axis=-1)

    # --- proofs with matrices ---

    @abstractmethod
    def psd(self, M: np.ndarray, blur: Numbers = 0.0) -> bool:
        """Return whether M less `blur` times the identity is proved positive semidefinite.

        Entries may be off by eps of themselves; other errors are the caller's, in `blur`.
        """

    def factors(self, M: np.ndarray) -> bool:
        """Return whether M has a Cholesky factor; the margin for its rounding is the caller's."""
        return self.psd(M)

    def eliminates(self, matrices: np.ndarray) -> np.ndarray:
        """Return which of the symmetric matrices (m x n x n) have positive pivots only.

        Rounding acts as in a Cholesky factorisation; its margin is the caller's.
        """
        rest = matrices.copy()
        good = np.ones(len(rest), dtype=bool)
        for k in range(rest.shape[1]):
            pivot = rest[:, k, k]
            good &= np.asarray(pivot > 0, dtype=bool)
            row = rest[:, k, k + 1 :].copy()
            scaled = row / np.where(good, pivot, 1.0)[:, None]
            rest[:, k + 1 :, k + 1 :] -= scaled[:, :, None] * row[:, None, :]
        return good

    def below(self, M: np.ndarray, t: Numbers) -> bool:
        """Return whether lambda_max(M) <= t is proved."""
        n = M.shape[0]
        return self.psd(_plus_diagonal(-M, t), 2 * (n + 2) * self.eps * abs(t))

    def ky_fan(self, M: np.ndarray, k: int, others: Any = ()) -> Numbers:
        """Return at least the sum of the k largest eigenvalues of M and of the numbers `others`.

        k t + tr Z + sum_j (others_j - t)_+ with t I + Z - M and Z positive semidefinite. Infinity
        if nothing is proved.
        """
        others = self.array(others) if len(others) else self.zeros(0)
        n, guess = M.shape[0], self.floats(M)
        if k >= n + others.size:  # all of them: nothing is to be proved
            every = np.append(np.diagonal(M), others)
            return every.sum() + every.size * self.eps * abs(every).sum()
        if not (np.isfinite(guess).all() and self.finite(others)):
            return float("inf")
        kept = min(k, n)
        w, Q = np.linalg.eigh(guess)  # LAPACK's driver for a part fails where many are equal
        w, Q = w[n - kept :], Q[:, n - kept :]
        everything = np.sort(np.concatenate([w, self.floats(others)]))
        nu = float(everything[-k])
        root = self.array(Q * np.sqrt(np.maximum(w - nu, 0.0)))
        Z = self.matmul(root, root.T)
        trace = np.trace(Z)
        size = float(np.abs(np.diagonal(guess)).sum() + self.floats(trace)) + (n + 1) * abs(nu)
        delta = max(term("ky_fan", n, k) * self.step * size, LEAST)  # M may be nothing
        for factor in (3, 24, 150, 1100):
            t = nu + factor * delta
            if self.psd(_plus_diagonal(Z - M, t), 2 * (k + 4) * self.eps * size):
                above = self.maximum(others - t, 0.0).sum() * (1 + others.size * self.eps)
                return k * self.number(t) + trace * (1 + (n + k) * self.eps) + above
        return float("inf")


class Float(Arithmetic):
    """float64: fast, with rounding terms."""

    eps = EPS
    step = EPS
    exact = False
    bytes = 8
    nanoseconds = 1.0

    def array(self, x: Any) -> np.ndarray:
        return np.array(x, dtype=np.float64)

    def number(self, x: Any) -> Any:
        return float(x)

    def floats(self, x: Numbers) -> np.ndarray:
        return np.asarray(x, dtype=np.float64)

    def upper(self, x: Numbers) -> float:
        return float(x)

    def high(self, x: Any) -> Any:
        return float(x)

    def finite(self, x: Numbers) -> bool:
        return bool(np.isfinite(x).all())

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a @ b

    def solve(self, S: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.linalg.solve(S, B)

    def sqrt(self, x: Numbers) -> Numbers:
        return np.sqrt(x)

    def exp(self, x: Numbers) -> Numbers:
        return np.exp(x)

    def maximum(self, a: Numbers, b: Numbers) -> Numbers:
        return np.maximum(a, b)

    def minimum(self, a: Numbers, b: Numbers) -> Numbers:
        return np.minimum(a, b)

    def top(self, values: np.ndarray, q: int) -> np.ndarray:
        n = values.shape[-1]
        if q < n:
            values = np.partition(values, n - q - 1, axis=-1)[..., n - q :]
        return -np.sort(-values, axis=-1)

    def psd(self, M: np.ndarray, blur: Numbers = 0.0) -> bool:
        """Factorise (Rump 2006), with 2 (n + 2) eps tr(M) for the rounding of that."""
        margin = 2 * (M.shape[0] + 2) * self.eps * float(np.abs(np.diagonal(M)).sum()) + blur
        return self.factors(_plus_diagonal(M, -margin))

    def factors(self, M: np.ndarray) -> bool:
        return factorises(M)


def factorises(matrix: np.ndarray) -> bool:
    """Return whether M has a Cholesky factor; LAPACK may give one for what are no numbers."""
    if not np.isfinite(matrix).all() or np.diagonal(matrix).min(initial=1.0) <= 0.0:
        return False
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False


def _plus_diagonal(M: np.ndarray, t: Numbers) -> np.ndarray:
    """Return M + t I, in an array of its own."""
    M = M.copy()
    M[np.diag_indices(M.shape[0])] += t
    return M
