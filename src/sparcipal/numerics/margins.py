"""The rounding terms of the solver: what is added to a bound so that it holds for exact arithmetic.

Every formula stands for a line of docs/methods/rounding.rst, whose section heads the group here.
Each function returns a relative error, a whole number of `EPS`; a call multiplies it by the size of
what was rounded. The checker has its own formulas and imports nothing from here: the two are
compared by tests, and a claim of the solver leaves room for both.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

EPS = float(np.finfo(np.float64).eps)
SINGLE = float(np.finfo(np.float32).eps)  # the same of single precision
TIE = 1e-12  # the part by which values of supports that are equal but for rounding may differ


def power_of_two(size: float) -> float:
    """Return the power of two next above `size`, 1 for zero; scaling by it is exact."""
    return float(2.0 ** np.ceil(np.log2(size))) if size > 0 else 1.0


def top_sum(values: np.ndarray, count: int) -> float:
    """The sum of the `count` largest entries."""
    if count <= 0:
        return 0.0
    if count >= values.size:
        return float(values.sum())
    return float(np.partition(values, values.size - count)[values.size - count :].sum())


# --- "The covariance" ---

# The solver adds every margin twice, the checker once: a formula is at least twice the error it
# stands for, so that what the two computations differ by fits between them.
SAFETY = 2.0
# What underflow can hide, in inside units ("What is taken for granted": margins have a floor).
TINY = 1e-290


def dense_products(n: int) -> float:
    """gamma_n of inner products of n terms, with what centring, weights and scaling round."""
    return (3 * n + 40) * EPS


def sparse_products(n: int) -> float:
    """The same for X'X - mm', where subtracting the mean cancels digits."""
    return (4 * n + 40) * EPS


def scaled_sparse_products(n: int) -> float:
    """The same where both the entry and the deviations it is divided by are rounded."""
    return (8 * n + 40) * EPS


def value(m: int) -> float:
    """The sum x'Ax over m nonzeros: "the rounding of the value's own sum"."""
    return 4 * (m + 8) * EPS


def sum_of(terms: int) -> float:
    """A sum of positive terms, computed in any order."""
    return terms * EPS


def claim() -> float:
    """The last sums and products of a claim, and other results of a few operations."""
    return 8 * EPS


def row_sums(s: int, k: int) -> float:
    """The k largest row sums of s entries each (Gershgorin)."""
    return (s + k + 4) * EPS


def frobenius(m: int, s: int) -> float:
    """A root of m sums of s squares each."""
    return (m + s + 16) * EPS


def height(n: int) -> int:
    """Additions that a number goes through in the checker's sums over n rows."""
    return 2 * isqrt(n) + 10


def integers() -> float:
    """An entry of "integers read in passes", relative to second moments about other integers."""
    return 12 * EPS


def summed(height: int) -> float:
    """An entry "read in passes", by trees of additions of this height; n for rows in any order."""
    return (6 * height + 40) * EPS


def few() -> float:
    """A number that is known exactly before its last operations, a quotient for instance."""
    return 4 * EPS


def indefinite(kind: type = np.float64) -> float:
    """By which part of its norm "a given matrix may fall short of being positive semidefinite"."""
    return float(np.sqrt(np.finfo(kind).eps))


# --- "A Cholesky factorisation as a proof" ---


def factorisation(n: int) -> float:
    """delta = 2 (n + 2) eps: the backward error, and the rounding of the subtraction."""
    return 2 * (n + 2) * EPS


def semidefinite(p: int) -> float:
    """The same for a given matrix, doubled because its trace may cancel."""
    return 4 * (p + 2) * EPS


def ky_fan(n: int, k: int) -> float:
    """The same for nu I + Z - M, with the rounding of Z of rank k."""
    return 2 * (n + k + 4) * EPS


def difference() -> float:
    """An entry of nu I + Z - M, relative to the largest row sum."""
    return 2 * EPS


def lowered(m: int, r: int) -> float:
    """An entry of B - VV', of V = BY or of Y'V, Y with m rows and r columns."""
    return (m + 2 * r + 8) * EPS


def moved(m: int) -> float:
    """An entry of A - LL' + cI, relative to the sizes of its terms, L of m columns."""
    return (m + 16) * EPS


def trace(n: int) -> float:
    """The sum of all n eigenvalues, read off the diagonal."""
    return 2 * n * EPS


def gram(p: int) -> float:
    """An n x n matrix of products of length p, formed for its eigenvalues."""
    return (p + 2) * EPS


# --- "Supports one by one" ---


def support(m: int) -> float:
    """mu: "a few m eps times its size"."""
    return 2 * (m + 4) * EPS


def quotient(m: int) -> float:
    """The Rayleigh quotient, "rounded down by 4 (m + 4) eps |A_S|_F"."""
    return 4 * (m + 4) * EPS


def packing(k: int) -> float:
    """Sums of the values of k supports."""
    return 4 * k * EPS


def packing_slack(n: int, s: int) -> float:
    """Sums of prices and values of the supports that the configuration bound packs, there and in
    the checker."""
    return 64 * (n + s + 8) * EPS


# --- "Pair splits, prices and rows outside a core" ---

# "Branch and bound proves everything at a level slightly below the one it claims". Of the
# tolerance, SETTLED is the part at which nodes are settled and CLAIMED the part that is claimed;
# what stays open is claimed with OPEN of it above what was proved.
SETTLED, CLAIMED, OPEN = 0.95, 0.98, 0.03


def charges(s: int) -> float:
    """A sum of charges, "inflated by 1 + (s + 8) eps"."""
    return (s + 8) * EPS


def exponential() -> float:
    """V_ij and V_ji by exponentials "times 1 + 6 eps or more", so that their product stays above
    U_ij^2; exp is good to two units in the last place."""
    return 8 * EPS


def outside(s: int) -> float:
    """A row outside the core: its s - 1 largest charges, "rounded up by s + 5 or more eps"."""
    return (s + 16) * EPS


def priced_outside(s: int) -> float:
    """The same where a charge is a difference in which the price may cancel."""
    return 4 * (s + 7) * EPS


def prices(n: int) -> float:
    """A sum of n prices, each stored in single precision."""
    return 2 * n * EPS


def priced(n: int) -> float:
    """The sum of n prices and of what is proved at them."""
    return (n + 8) * EPS


def tree(s: int) -> float:
    """The value of an incumbent: all claims are relative to it."""
    return 8 * s * EPS


def drop() -> float:
    """The difference of two charges, when a feature is supposed to be in or out."""
    return 4 * EPS


def majorant(rank: int) -> float:
    """M - BB' with B of this rank."""
    return 4 * (rank + 2) * EPS


def weighted(n: int) -> float:
    """B' Diag B, sums over n rows."""
    return (2 * n + 16) * EPS


def eigenvectors(n: int) -> float:
    """Residuals and angles of computed eigenvectors of order n."""
    return 8 * n * EPS


def alike(s: int) -> float:
    """Sums of squares over pairs of features that are alike, and what they are compared with."""
    return 16 * (s + 8) * EPS


def multiples() -> float:
    """Rows that are replaced by exact multiples."""
    return 4 * EPS


# --- "Features that were dropped" ---


def dropped(n: int) -> float:
    """A bound on n nonzeros and their dropped variances, added up."""
    return 4 * (n + 4) * EPS


def variance(height: int) -> float:
    """A variance, by a tree of additions of this height, relative to the second moment."""
    return (6 * height + 24) * EPS


def flat_price(s: int) -> float:
    """s times one price on every feature, subtracted from the diagonal."""
    return 8 * s * EPS


# --- "Sketches and cones" ---

# Factorisations of a sketch: as SAFETY, with the rounding of V itself.
SKETCH_SAFETY = 6.0


def sketch(p: int) -> float:
    """The margin "2 (p + 16) eps times all traces"; V has at most 16 columns."""
    return 2 * (p + 16) * EPS


def sketch_samples(n: int) -> float:
    """The factorisation of order n after the Woodbury formula."""
    return 4 * (n + 16) * EPS


def nystrom(p: int) -> float:
    """The trace of what Nystrom's approximation leaves."""
    return 8 * (p + 16) * EPS


def condition(r: int) -> float:
    """The proof that half the smallest eigenvalue of an r x r matrix is below all of them."""
    return 2 * (r + 4) * EPS


def cone_rows(r: int, s: int) -> float:
    """e of an entry of L G - T: sums of s products of vectors of length r."""
    return (4 * r + s + 20) * EPS


def cone_level(r: int) -> float:
    """e of an entry of L G - T, from L G."""
    return (6 * r + 12) * EPS


def low_rank(p: int) -> float:
    """The sum of tail, level and margin, or an entry of A - VV'; V has p rows."""
    return 16 * p * EPS


def copies(k: int) -> float:
    """k times a bound for one component."""
    return 8 * k * EPS


# --- "Ellipsoids" ---


def whitened(n: int) -> float:
    """An entry of C F, C T or C T C', of the size of the rows and columns that are multiplied."""
    return (4 * n + 64) * EPS


# --- Covariances of pairs (docs/missing.rst) ---


def pair(n: int) -> float:
    """The covariance of a pair of features over n rows, relative to a sum of magnitudes."""
    return (4 * n + 64) * EPS


def pair_mean() -> float:
    """The mean of a feature, relative to its largest entry."""
    return 20 * EPS


def definite(p: int) -> float:
    """The smallest eigenvalue of p features of variance one, and the matrix it is that of."""
    return 4 * (p + 2) ** 2 * EPS


def repaired(p: int) -> float:
    """A repair of p features, relative to the norm: "64 p eps", and more for what was computed."""
    return 80 * p * EPS


# --- Dual bounds (docs/methods/duals.rst) ---


def dual_claim() -> float:
    """A penalty times a number of nonzeros, and its sum with eigenvalues."""
    return 4 * EPS


def greedy_entry() -> float:
    """An entry of the greedy test's matrix: some products and a division."""
    return 16 * EPS


def greedy_product(m: int) -> float:
    """A x for an x of m nonzeros."""
    return 4 * (m + 16) * EPS
