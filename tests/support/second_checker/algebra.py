"""Linear algebra in fractions; nothing rests on an approximate eigenvector."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from heapq import nlargest
from itertools import combinations

import numpy as np

from .reading import EPS, Matrix

GRID = 2**220


def root(number: Fraction) -> Fraction:
    """The square root, to 200 bits."""
    shift = 2 ** max(400, 400 + 2 * (number.denominator.bit_length() // 2))
    return Fraction(math.isqrt(number.numerator * shift * shift // number.denominator), shift)


def psd(H: Matrix) -> bool:
    """Whether H is positive semidefinite, by LDL' on a grid, then if need be in fractions.

    On the grid every entry is rounded down, by less than one: the error is a matrix of norm at
    most n, which the diagonal is lowered by. So a yes is a proof.
    """
    n = len(H)
    S = [[H[i][j].numerator * GRID // H[i][j].denominator for j in range(i + 1)] for i in range(n)]
    for k in range(n):
        for i in range(k, n):
            S[i][i] -= n
        if S[k][k] <= 0:
            return n <= 16 and semidefinite(H)
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                S[i][j] -= -(-S[i][k] * S[j][k] // S[k][k])
    return True


def semidefinite(H: Matrix) -> bool:
    """Whether H is positive semidefinite, in fractions."""
    S = [list(row) for row in H]
    for k in range(len(S)):
        if S[k][k] < 0 or (S[k][k] == 0 and any(S[i][k] for i in range(k + 1, len(S)))):
            return False
        for i in range(k + 1, len(S) if S[k][k] else 0):
            factor = S[i][k] / S[k][k]
            for j in range(k + 1, len(S)):
                S[i][j] -= factor * S[k][j]
    return True


def below(M: Matrix, level: Fraction) -> bool:
    """Whether the largest eigenvalue of M is at most the level."""
    return psd(
        [[(level if i == j else 0) - x for j, x in enumerate(row)] for i, row in enumerate(M)]
    )


def block(A: Matrix, S) -> Matrix:
    """The rows and columns of S."""
    return [[A[i][j] for j in S] for i in S]


def eigen(M: Matrix):
    """Approximate eigenvalues, the largest first, and eigenvectors in rows."""
    w, Q = np.linalg.eigh(np.array([[float(x) for x in row] for row in M]))
    return [Fraction(x) for x in w[::-1].tolist()], [[Fraction(x) for x in q] for q in Q.T[::-1]]


def fan(M: Matrix, k: int, level: Fraction, others=()) -> bool:
    """Whether the k largest among the eigenvalues of M and the others sum to the level at most.

    By the dual of Fan's theorem: k nu + tr Z + the sum of (other - nu)_+, with nu I + Z - M
    positive semidefinite.
    """
    w, Q = eigen(M)
    nu = sorted([*w, *others], reverse=True)[k - 1]
    lift = [max(x - nu, Fraction(0)) for x in w]
    Z = [
        [sum(z * q[i] * q[j] for z, q in zip(lift, Q) if z) for j in range(len(M))]
        for i in range(len(M))
    ]
    used = k * nu + sum(Z[i][i] for i in range(len(M))) + sum(max(x - nu, 0) for x in others)
    nu += (level - used) / k
    return level >= used and below(
        [[M[i][j] - Z[i][j] for j in range(len(M))] for i in range(len(M))], nu
    )


def fan_value(M: Matrix, k: int, others=()) -> Fraction:
    """A number that these k largest do not exceed, as small as it could be proved."""
    most = sum(sorted([*eigen(M)[0], *others], reverse=True)[:k])
    step = EPS * max(abs(most), sum((abs(M[i][i]) for i in range(len(M))), Fraction(1, 2**900)))
    while not fan(M, k, most, others):
        most, step = most + step, 2 * step
    return most


def largest(numbers, count: int) -> Fraction:
    """The sum of the largest positive ones of the numbers, so many of them at most."""
    return sum((x for x in nlargest(count, numbers) if x > 0), Fraction(0))


def inverse(H: Matrix):
    """The determinant of H and, unless that is zero, its inverse."""
    n = len(H)
    S = [list(row) + [Fraction(i == j) for j in range(n)] for i, row in enumerate(H)]
    det = Fraction(1)
    for k in range(n):
        pivot = next((i for i in range(k, n) if S[i][k]), None)
        if pivot is None:
            return Fraction(0), []
        if pivot != k:
            S[k], S[pivot], det = S[pivot], S[k], -det
        det *= S[k][k]
        S[k] = [x / S[k][k] for x in S[k]]
        for i in range(n):
            if i != k and S[i][k]:
                S[i] = [x - S[i][k] * y for x, y in zip(S[i], S[k])]
    return det, [row[n:] for row in S]


def grows(H: Matrix) -> bool:
    """Whether H is not copositive although all its proper principal submatrices are.

    Hadeler (1983): if and only if det H < 0 and the adjugate has no negative entry.
    """
    det, inv = inverse(H)
    return det < 0 and all(x <= 0 for row in inv for x in row)


def worth(A: Matrix, S, level: Fraction, nonnegative: bool) -> bool:
    """Whether x'Ax is at most the level for every unit x (x >= 0) that vanishes outside S."""
    B = block(A, S)
    H = [[(level if i == j else 0) - B[i][j] for j in range(len(S))] for i in range(len(S))]
    if psd(H) or not nonnegative:
        return psd(H)
    return not any(
        grows(block(H, T))
        for size in range(1, len(S) + 1)
        for T in combinations(range(len(S)), size)
    )


class Values:
    """Numbers that no component on a support exceeds, each as small as it could be proved."""

    def __init__(self, A: Matrix, nonnegative: bool) -> None:
        self.A, self.nonnegative = A, nonnegative
        self.of = lru_cache(maxsize=None)(self.find)

    def find(self, S: tuple[int, ...]) -> Fraction:
        """Look at smaller supports first where signs count, then at the leading eigenvalue."""
        if len(S) == 1:
            return self.A[S[0]][S[0]]
        B, least = block(self.A, S), Fraction(-1)
        if self.nonnegative:
            least = max(self.of(S[:i] + S[i + 1 :]) for i in range(len(S)))
            if self.holds(B, least):
                return least
        top = eigen(B)[0][0]
        step = abs(top) * EPS / 4
        while not self.holds(B, max(top, least)):
            top, step = top + step, 2 * step
        return max(top, least)

    def holds(self, B: Matrix, t: Fraction) -> bool:
        """Whether t bounds the form B, given that it does on all smaller supports."""
        if below(B, t):
            return True
        H = [[(t if i == j else 0) - B[i][j] for j in range(len(B))] for i in range(len(B))]
        return self.nonnegative and not grows(H)


def best_packing(tables: list[list[tuple[Fraction, frozenset]]], used=frozenset(), floor=None):
    """The largest sum of one value from each table whose supports are disjoint."""
    if not tables:
        return Fraction(0)
    best, rest = floor, sum(table[0][0] for table in tables[1:] if table)
    for value, S in tables[0]:
        if best is not None and value + rest <= best:
            break
        if not S & used:
            inner = best_packing(tables[1:], used | S, None if best is None else best - value)
            if inner is not None and (best is None or value + inner > best):
                best = value + inner
    return best


def times(A: Matrix, B: Matrix) -> Matrix:
    """The product of two matrices."""
    columns = list(zip(*B))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in A]


def squared(L: Matrix) -> Matrix:
    """The matrix LL'."""
    return times(L, [list(column) for column in zip(*L)])


def defect(A: Matrix) -> Fraction:
    """A number that makes A positive semidefinite when it is added to the diagonal."""
    if psd(A):
        return Fraction(0)
    size = sum(abs(A[i][i]) for i in range(len(A)))
    step = abs(min(eigen(A)[0])) + EPS * size
    while not below([[-x for x in row] for row in A], step):
        step *= 2
    return step
