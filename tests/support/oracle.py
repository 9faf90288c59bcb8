"""The judge: enumeration to find who is best, exact fractions to say what that is worth.

Nothing here is shared with the solver. The covariance of the user's numbers is formed in exact
rational arithmetic. Supports are compared in floating point, and what the winners explain is then
computed exactly: x'Ax / x'x of any vector that is allowed is a true lower bound on the optimum,
and for the leading eigenvector of the best support it is the optimum to about thirty digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

Matrix = list[list[Fraction]]
DIGITS = 10**60  # square roots are fractions with this many digits


def exact_covariance(
    X: np.ndarray, *, center: bool, scale: bool, weights: np.ndarray | None
) -> Matrix:
    """The covariance of a table; with `scale` the correlations, to sixty digits."""
    rows = [[Fraction(float(v)) for v in row] for row in np.asarray(X, dtype=np.float64)]
    share = [Fraction(1)] * len(rows) if weights is None else [Fraction(float(w)) for w in weights]
    total = sum(share)
    p = len(rows[0])
    mean = [sum(w * row[j] for w, row in zip(share, rows)) / total for j in range(p)]
    if not center:
        mean = [Fraction(0)] * p
    rows = [[v - m for v, m in zip(row, mean)] for row in rows]
    A = [
        [sum(w * row[i] * row[j] for w, row in zip(share, rows)) / total for j in range(p)]
        for i in range(p)
    ]
    if not scale:
        return A
    # with a mean that is not subtracted, the scale is the root of the second moment
    root = [_root(A[i][i]) if A[i][i] else Fraction(1) for i in range(p)]
    return [[A[i][j] / (root[i] * root[j]) for j in range(p)] for i in range(p)]


def exact_matrix(A: np.ndarray) -> Matrix:
    return [[Fraction(float(v)) for v in row] for row in np.asarray(A, dtype=np.float64)]


def _root(x: Fraction) -> Fraction:
    """Relative error below 1e-59, whatever the size of x."""
    shift = max(0, x.denominator.bit_length() - x.numerator.bit_length())
    grow = DIGITS**2 << (2 * shift)
    return Fraction(isqrt(x.numerator * grow // x.denominator), DIGITS << shift)


class Oracle:
    """What can be explained with a covariance of at most ten or so features."""

    def __init__(self, exact: Matrix, nonnegative: bool) -> None:
        self.exact, self.nonnegative = exact, nonnegative
        self.p = len(exact)
        self.size = max((abs(v) for row in exact for v in row), default=Fraction(0)) or Fraction(1)
        # one unit for all, so that nothing over- or underflows that matters
        self.A = np.array([[float(v / self.size) for v in row] for row in exact])
        self.alone, self.lead = self._table(self.A)

    def _table(self, A: np.ndarray) -> tuple[np.ndarray, list[np.ndarray | None]]:
        """For every set of features the best component inside it: value and vector."""
        alone = np.full(1 << self.p, -np.inf)
        lead: list[np.ndarray | None] = [None] * (1 << self.p)
        for size in range(1, self.p + 1):
            sets = np.array(list(itertools.combinations(range(self.p), size)))
            w, Q = np.linalg.eigh(A[sets[:, :, None], sets[:, None, :]])
            for members, values, vectors in zip(sets, w, Q):
                mask = int((1 << members).sum())
                for i in members:
                    inner = mask & ~(1 << int(i))
                    if alone[inner] > alone[mask]:
                        alone[mask], lead[mask] = alone[inner], lead[inner]
                x = vectors[:, -1]
                # A nonnegative optimum on all of a set is a leading eigenvector with one sign.
                one_sign = x.min() >= -1e-9 or x.max() <= 1e-9
                if values[-1] > alone[mask] and (one_sign or not self.nonnegative):
                    full = np.zeros(self.p)
                    full[members] = np.abs(x) if self.nonnegative else x
                    alone[mask], lead[mask] = values[-1], full
        return alone, lead

    def optimum(
        self, sizes: Sequence[int], total: int | None, touching: Sequence[int] | None = None
    ) -> Fraction:
        """Disjoint components: the best packing, and what it explains exactly.

        With `touching`, only choices of supports that contain one of these features.
        """
        # best[mask]: value and the vectors of the components so far, inside the mask
        best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        for s in sorted(sizes):
            after = dict(best)
            for mask, (value, parts) in best.items():
                free = ((1 << self.p) - 1) & ~mask
                part = free
                while part:
                    if part.bit_count() <= s:
                        gain = value + max(float(self.alone[part]), 0.0)
                        joined = mask | part
                        if gain > after.get(joined, (-np.inf, ()))[0]:
                            after[joined] = gain, (*parts, part)
                    part = (part - 1) & free
            best = after
        limit = sum(sizes) if total is None else total
        some = -1 if touching is None else sum(1 << int(i) for i in touching)
        allowed = [
            entry
            for mask, entry in best.items()
            if mask.bit_count() <= limit and (mask & some or touching is None)
        ]
        if not allowed:
            return Fraction(0)
        top = max(value for value, _ in allowed)
        # all that floating point cannot tell apart from the best
        close = sorted((e for e in allowed if e[0] >= top * (1 - 1e-9)), reverse=True)[:8]
        return max(self.worth([self.lead[part] for part in parts]) for _, parts in close)

    def worth(self, vectors: Iterable[np.ndarray | None]) -> Fraction:
        """The exact sum of x'Ax / x'x."""
        return sum((self.quotient(x) for x in vectors if x is not None), Fraction(0))

    def quotient(self, x: np.ndarray) -> Fraction:
        support = [int(i) for i in np.flatnonzero(x)]
        y = {i: Fraction(float(x[i])) for i in support}
        norm = sum(v * v for v in y.values())
        value = sum(y[i] * y[j] * self.exact[i][j] for i in support for j in support)
        return max(value / norm, Fraction(0))

    def products(self, vectors: Sequence[np.ndarray]) -> Matrix:
        """W'AW for unit columns, exactly but for the norms' square roots."""
        columns = []
        for x in vectors:
            y = [Fraction(float(v)) for v in x]
            norm = _root(sum(v * v for v in y))
            columns.append([v / norm for v in y])
        return [
            [
                sum(
                    a[i] * self.exact[i][j] * b[j]
                    for i in range(self.p)
                    if a[i]
                    for j in range(self.p)
                    if b[j]
                )
                for b in columns
            ]
            for a in columns
        ]

    def adjusted(self, vectors: Sequence[np.ndarray]) -> Fraction:
        """What overlapping components explain together: pivots of an exact elimination."""
        rest = self.products(vectors)
        total, k = Fraction(0), len(rest)
        for j in range(k):
            pivot = rest[j][j]
            if pivot <= 0:
                continue
            total += pivot
            rest = [
                [rest[a][b] - rest[a][j] * rest[j][b] / pivot for b in range(k)] for a in range(k)
            ]
        return total

    def deflated(self, sizes: Sequence[int]) -> Fraction:
        """Overlapping components: one after the other, the best on what the others left."""
        chosen: list[np.ndarray] = []
        rest = self.A.copy()
        for s in sizes:
            alone, lead = self._table(rest)
            masks = [m for m in range(1, 1 << self.p) if m.bit_count() <= s]
            x = lead[max(masks, key=lambda m: alone[m])]
            if x is None:
                break
            chosen.append(x)
            image, value = rest @ x, float(x @ rest @ x)
            if value > 1e-12:
                rest = rest - np.outer(image, image) / value
        return self.adjusted(chosen)


def proves_below(A: Matrix, members: Sequence[int], level: Fraction) -> bool:
    """Whether an exact LDL' elimination shows level I - A to be positive semidefinite there."""
    R = [[(level if i == j else 0) - A[i][j] for j in members] for i in members]
    n = len(R)
    for j in range(n):
        if R[j][j] < 0 or (R[j][j] == 0 and any(R[i][j] != 0 for i in range(j + 1, n))):
            return False
        if R[j][j] == 0:
            continue
        for i in range(j + 1, n):
            factor = R[i][j] / R[j][j]
            for c in range(j + 1, n):
                R[i][c] -= factor * R[j][c]
    return True


def worst_support(oracle: Oracle, s: int, level: Fraction) -> Any:
    """A support of s features whose largest eigenvalue is above the level, or None; exactly."""
    for members in itertools.combinations(range(oracle.p), min(s, oracle.p)):
        if not proves_below(oracle.exact, members, level):
            return members
    return None
