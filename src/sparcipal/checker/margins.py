"""The rounding terms of the bounds: the table of docs/methods/rounding.rst, in units of eps.

The solver adds each term twice, a replay needs it once. `numerics/margins.py` states the same
numbers for the solver, and a test holds both against the page.
"""

from __future__ import annotations


def sum_of(terms: int) -> int:
    return terms


def claim() -> int:
    """Of the last products of a bound."""
    return 8


def ky_fan(n: int, k: int) -> int:
    """The factorisation of nu I + Z - M, order n, for a sum of k eigenvalues."""
    return 2 * (n + k + 4)


def gram(p: int) -> int:
    """A matrix of products of length p."""
    return p + 2


def row_sums(s: int, k: int) -> int:
    """k sums of s entries each."""
    return s + k + 4


def frobenius(m: int, s: int) -> int:
    """A root of m sums of s squares."""
    return m + s + 16


def charges(s: int) -> int:
    """s charges of a row."""
    return s + 8


def support(m: int) -> int:
    """An eigenvalue of m features."""
    return 2 * (m + 4)


def pencil(n: int, k: int) -> int:
    """An entry of nu H + HPP'H - A, or tr P'HP, with P of k columns."""
    return 3 * n + k + 16


def moved(m: int) -> int:
    """An entry of A - LL' + cI, with L of m columns."""
    return m + 16


def majorant(rank: int) -> int:
    """An entry of M - BB'."""
    return 4 * (rank + 2)


def outside(s: int) -> int:
    """The sum of a row outside a core."""
    return s + 16


def priced(n: int) -> int:
    """n prices, and what is proved at them."""
    return n + 8


def sketch(p: int) -> int:
    """A sketch of p rows."""
    return 2 * (p + 16)


def whitened(n: int) -> int:
    """An entry of C F, C T or C T C', of order n."""
    return 4 * n + 64


def dual_claim() -> int:
    """A penalty times nonzeros, and its sum with eigenvalues."""
    return 4


def greedy_entry() -> int:
    """An entry of the greedy test's matrix."""
    return 16
