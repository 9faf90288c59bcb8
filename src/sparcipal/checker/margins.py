"""The rounding terms of the bounds: the table of docs/methods/rounding.rst, in units of eps.

The solver adds each term twice, a replay needs it once. `numerics/margins.py` states the same
numbers for the solver, and a test holds both against the page.
"""

from __future__ import annotations

from collections.abc import Callable

TERMS: dict[str, Callable[..., int]] = {
    "sum_of": lambda m: m,
    "claim": lambda: 8,  # the last products of a bound
    "ky_fan": lambda n, k: 2 * (n + k + 4),  # the factorisation of nu I + Z - M, order n
    "gram": lambda p: p + 2,  # products of length p
    "row_sums": lambda s, k: s + k + 4,  # k sums of s entries
    "frobenius": lambda m, s: m + s + 16,  # a root of m sums of s squares
    "charges": lambda s: s + 8,  # s charges of a row
    "support": lambda m: 2 * (m + 4),  # an eigenvalue of m features
    "lowered": lambda m, r: m + 2 * r + 8,  # B - BYY'B, with Y of m rows and r columns
    "moved": lambda m: m + 16,  # A - LL' + cI, with L of m columns
    "majorant": lambda r: 4 * (r + 2),  # M - BB', with B of rank r
    "alike": lambda s: 16 * (s + 8),  # squares over the pairs of s features, and what bounds them
    "outside": lambda s: s + 16,  # a row outside a core
    "priced": lambda n: n + 8,  # n prices, and what is proved at them
    "sketch": lambda p: 2 * (p + 16),  # a sketch of p rows
    "whitened": lambda n: 4 * n + 64,  # C T C', order n
    "dual_claim": lambda: 4,  # a penalty times nonzeros
    "greedy_entry": lambda: 16,  # an entry of the greedy test's matrix
}


def term(name: str, *sizes: int) -> int:
    """Return the term of this name, in units of eps."""
    return TERMS[name](*sizes)
