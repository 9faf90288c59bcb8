"""The cheap bounds; statement and proof: docs/methods/cheap.rst.

They cost milliseconds to seconds; each has a name and a rounding margin.

Write OPT for the best sum of x_j'Ax_j over k unit vectors with disjoint supports of at most
s_1..s_k features, s = max s_j and m = sum s_j. The computed matrix differs from the exact one by at
most `covariance.rounding(m)` in that sum, so that is added to every bound of the computed matrix.

eigenvalues  Orthonormal vectors: OPT <= the k largest eigenvalues (Ky Fan).
trace        A is PSD: x'Ax <= trace of A on the support, so OPT <= the m largest variances. Where
             supports overlap, neither orthogonal components nor adjusted variances have more than
             the trace of A on all features together.
gershgorin   lambda_max(A_S) <= max over i in S of A_ii + the s-1 largest |A_ij|; supports are
             disjoint, so OPT <= the k largest of these row sums.
clip         2 u x_i x_j <= |u| (x_i^2 + x_j^2): move U = clip(A, -rho, rho) off the matrix and
             charge each row its s-1 largest |U_ij| on the diagonal; then the k largest eigenvalues.
             What stays off the diagonal is the soft-thresholded matrix.
frobenius    lambda_max(A_S) <= c + |A_S - cI|_F, so with rho_i = (A_ii - c)^2 + the s-1 largest
             A_ij^2: OPT <= kc + sqrt(k * the m largest rho_i).

For nonnegative components x'Ax <= x'A_+x, A_+ with its negative off-diagonal entries set to zero:
row sums, clipping and Frobenius norms count only positive entries.

Eigenvalues here are never taken on trust: `proved_eigenvalue_sum` backs them by a Cholesky
factorisation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..numerics import margins
from ..numerics.eigen import factorises, largest_eigenpairs, largest_eigenvalues
from ..numerics.largest import magnitudes, row_tops
from ..numerics.margins import SAFETY, top_sum
from ..problem.covariance import DENSE_LIMIT, Covariance
from ..problem.problem import Problem
from ..problem.result import Bound
from .parts import sum_of_parts

# Clipping costs some twenty eigenvalue problems. Beyond this many features only the pair-split
# bounds do it: they start from the best clipping and improve on it.
CLIP_LIMIT = 150
STEPS = 18  # of a search in one variable: it ends with 1 / 6000 of the interval
GOLDEN = 0.6180339887498949  # the golden section: each step evaluates the function once
# The Gershgorin bound of a large covariance is computed in turns, which read so many rows, and of
# each the entries of so many features: a few whole rows may show that it cannot beat the trace.
TURNS = ((16, None), (4096, 2048), (128, None))
BLOCK = 2**20  # entries of rows that are read at a time


def cheap_bounds(problem: Problem, *, clip: bool = True) -> list[Bound]:
    """Return every bound of about p^2 operations, the smallest first, in inside units.

    `clip` adds the one of some twenty eigenvalue problems, where features are few. The eigenvalue
    bound costs p^3; `prove` adds it where more than these is asked for.
    """
    if not problem.disjoint:
        both = [_parts_bound(problem), trace_bound(problem)]
        return sorted(both, key=lambda bound: bound.value)
    bounds = [trace_bound(problem)]
    if not problem.covariance.diagonal.any():
        return bounds  # nothing varies, and nothing is left to prove
    if problem.covariance.n_features <= DENSE_LIMIT:
        largest = _largest_magnitudes(problem)
        sums = problem.covariance.diagonal + largest.sum(axis=1)
        bounds += [gershgorin_bound(problem, sums), frobenius_bound(problem, largest)]
    else:
        # a bound that is lower by less would not be worth its time
        sums = _row_sums(problem, (1 - 1e-6) * bounds[0].value)
        bounds += [] if sums is None else [gershgorin_bound(problem, sums)]
    if clip and problem.covariance.n_features <= CLIP_LIMIT:
        bounds.append(clip_bound(problem))
    return sorted(bounds, key=lambda bound: bound.value)


def _parts_bound(problem: Problem) -> Bound:
    """Return the sum of what bounds each component alone, whatever components share."""
    parts = {s: cheap_bounds(problem.alone(s))[0] for s in set(problem.cardinalities)}
    return sum_of_parts([parts[s] for s in problem.cardinalities], problem.cardinalities)


def trace_bound(problem: Problem) -> Bound:
    covariance, m = problem.covariance, problem.n_nonzero
    total = top_sum(covariance.diagonal, m) * (1 + SAFETY * margins.sum_of(m))
    total += m * covariance.psd_shift
    return _bound("trace", total, problem)


def eigenvalue_bound(problem: Problem) -> Bound | None:
    """Return the Ky Fan bound; None if both the p x p and the n x n matrix are too large."""
    covariance = problem.covariance
    if not covariance.diagonal.any():
        return None
    found = same_spectrum(covariance)
    if found is None:
        return None
    matrix, kind, error = found
    k = min(problem.k, covariance.n_features)
    total = proved_eigenvalue_sum(matrix, min(k, len(matrix))) + SAFETY * k * error
    data = {} if kind == "features" else {"matrix": kind}
    # The eigenvalues of the computed matrix move by at most the error over all p features.
    shift = k * covariance.rounding(covariance.n_features)
    if not problem.disjoint:
        # What overlapping supports explain is at most that in A + dI, where it is positive
        # semidefinite: adjusted variances, and components on features that are left out.
        total += k * covariance.psd_shift
    return Bound("eigenvalues", total + SAFETY * shift, data, SAFETY * shift)


def same_spectrum(cov: Covariance) -> tuple[np.ndarray, str, float] | None:
    """Return the smaller of two matrices with the eigenvalues of A, which one it is, and what
    forming it moves them by; None if both are too large."""
    rows = cov.factor()
    if rows is not None and len(rows) < min(cov.n_features, DENSE_LIMIT):
        gram = rows @ rows.T
        return gram, "samples", margins.gram(cov.n_features) * float(np.trace(gram))
    return (cov.dense(), "features", 0.0) if cov.n_features <= DENSE_LIMIT else None


def _largest_magnitudes(problem: Problem) -> np.ndarray:
    """Return the s - 1 largest |A_ij| of every row, j != i; positive A_ij only for nonnegative
    components."""
    A = problem.covariance.dense()
    p, count = A.shape[0], min(problem.s_max - 1, A.shape[0])
    largest = np.empty((p, count))
    for start in range(0, p, 64):  # a few rows at a time, so that no second matrix is needed
        rows = A[start : start + 64]
        magnitude = magnitudes(rows, problem.nonnegative)
        np.fill_diagonal(magnitude[:, start:], 0.0)
        largest[start : start + 64] = row_tops(magnitude, count)
    return largest


def gershgorin_bound(problem: Problem, sums: np.ndarray) -> Bound:
    """Bound the components by the largest row sums, or by what is at least as large."""
    covariance, s, k = problem.covariance, problem.s_max, problem.k
    total = top_sum(np.maximum(sums, 0.0), k) * (1 + SAFETY * margins.row_sums(s, k))
    # A row sum carries the error of its entries, which the quadratic form's margin does not cover.
    roots = np.sqrt(covariance.error_weights)
    row_error = covariance.error_unit * float(roots.max()) * top_sum(roots, s)
    return _bound("gershgorin", total, problem, rows=SAFETY * k * row_error)


def _row_sums(problem: Problem, known: float) -> np.ndarray | None:
    """Bound the row sums of a large covariance; None where that cannot beat a `known` bound.

    |A_ij|^2 <= (A_ii + d)(A_jj + d) when A + dI is PSD. That bounds all rows, and what is not read
    of a row.
    """
    k, covariance = problem.k, problem.covariance
    deviation = np.sqrt(np.maximum(covariance.diagonal, 0.0) + covariance.psd_shift)
    sums = covariance.diagonal + deviation * top_sum(deviation, problem.s_max - 1)
    for limit, columns in TURNS:
        order = np.argsort(-sums, kind="stable")
        if columns and sums[order[limit : limit + k]].sum() >= known:
            return None  # whatever is read
        read = _lower_sums(problem, sums, order[:limit], columns or sums.size)
        if not columns and top_sum(sums[read], k) >= known:
            return None
    return np.asarray(sums)


def _lower_sums(problem: Problem, sums: np.ndarray, order: np.ndarray, columns: int) -> np.ndarray:
    """Replace bounds of row sums by what the rows hold in some columns; return the rows read.

    They are read in the given order, until the rest of it cannot be among the k largest.
    """
    covariance, k, s = problem.covariance, problem.k, problem.s_max
    deviation = np.sqrt(np.maximum(covariance.diagonal, 0.0) + covariance.psd_shift)
    wide = np.argsort(-deviation, kind="stable")
    inside, rest = np.sort(wide[:columns]), deviation[wide[columns : columns + s - 1]]
    size = min(max(BLOCK // inside.size, 16), 128)
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        if start >= k and np.partition(sums[order[:start]], -k)[-k] >= sums[rows[0]]:
            return order[:start]
        entries = magnitudes(covariance.submatrix(inside, rows).T, problem.nonnegative)
        entries[rows[:, None] == inside] = 0.0
        tops = row_tops(np.hstack([entries, np.outer(deviation[rows], rest)]), s - 1)
        sums[rows] = np.minimum(sums[rows], covariance.diagonal[rows] + tops.sum(axis=1))
    return order


def clip_bound(problem: Problem) -> Bound:
    """Search for the best threshold rho; the bound is convex in it."""
    A = problem.covariance.dense()
    s, k = problem.s_max, min(problem.k, A.shape[0])
    off = _off_diagonal(A, problem.nonnegative)
    largest = float(np.abs(off).max()) if off.size else 0.0

    def matrix(rho: float) -> np.ndarray:
        clipped = np.clip(off, -rho, rho)
        M = off - clipped
        charge = row_tops(np.abs(clipped), s - 1).sum(axis=1) * (1 + margins.charges(s))
        M[np.diag_indices_from(M)] = problem.covariance.diagonal + charge
        return M

    if largest == 0.0 or s == 1:
        rho = largest
    else:
        rho = _minimise(lambda r: _largest_eigenvalues(matrix(r), k).sum(), 0.0, largest)
        rho = float(np.float32(rho))
    total = proved_eigenvalue_sum(matrix(rho), k)
    return _bound("clip", total, problem, {"rho": float(rho)})


def frobenius_bound(problem: Problem, largest: np.ndarray) -> Bound:
    s, k, m = problem.s_max, problem.k, problem.n_nonzero
    rest = np.square(largest).sum(axis=1)
    diagonal = problem.covariance.diagonal

    def bound(c: float) -> float:
        return k * c + float(np.sqrt(k * top_sum((diagonal - c) ** 2 + rest, m)))

    c = _minimise(bound, 0.0, float(diagonal.max()))
    value = bound(c) * (1 + SAFETY * margins.frobenius(m, s))
    return _bound("frobenius", value, problem, {"c": float(c)})


def proved_eigenvalue_sum(M: np.ndarray, k: int) -> float:
    """Return an upper bound on the sum of the k largest eigenvalues of M, proved by Cholesky.

    If nu I + Z - M is PSD with Z PSD, the sum is at most k nu + tr Z. Approximate leading
    eigenpairs give Z = sum (lambda_i - nu) q_i q_i'; whatever they are worth, a factorisation of nu
    I + Z - M + 2 delta I that runs to its end proves that matrix minus delta I PSD, where delta
    bounds the backward error.
    """
    n = M.shape[0]
    if n <= k:
        return float(np.trace(M)) + SAFETY * margins.trace(n) * float(np.abs(np.diagonal(M)).sum())
    eigenvalues, vectors = _leading_eigenpairs(M, k)
    for _ in range(2):
        proved = _ky_fan_by_cholesky(M, k, eigenvalues, vectors)
        if proved is not None:
            return proved
        # The iterative solver missed an eigenvalue: take the complete decomposition.
        eigenvalues, vectors = largest_eigenpairs(M, k)
    raise ArithmeticError("the eigenvalues of the matrix could not be certified; is it finite?")


def _ky_fan_by_cholesky(
    M: np.ndarray, k: int, eigenvalues: np.ndarray, vectors: np.ndarray
) -> float | None:
    n = M.shape[0]
    nu = float(eigenvalues.min())
    lift = eigenvalues - nu
    Q = vectors * np.sqrt(lift)
    B = _difference(Q, M)
    diagonal = np.diagonal(B).copy()
    trace_Z = float((Q * Q).sum())
    size = float(np.abs(np.diagonal(M)).sum()) + trace_Z + (n + 1) * abs(nu)
    delta = margins.ky_fan(n, k) * size
    for slack in (2 * delta, 64 * delta, 2**14 * delta):
        B[np.diag_indices_from(B)] = diagonal + (nu + slack)
        if not factorises(B):
            B = _difference(Q, M)  # the factorisation overwrites its argument
            continue
        return k * (nu + slack + delta) + trace_Z * (1 + margins.sum_of(n + k)) + SAFETY * k * delta
    return None


def _difference(Q: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return QQ' - M without allocating a third matrix."""
    B = Q @ Q.T
    B -= M
    return B


def proved_margins(blocks: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """Return what must be added to each of `tops`, the computed largest eigenvalues of small
    matrices, so that Cholesky proves the sum to be an upper bound; infinity if that fails."""
    m = blocks.shape[-1]
    diagonal = np.einsum("...ii->...i", blocks)
    # at least the trace of t I - M; positive even where everything underflows
    size = np.abs(diagonal).sum(axis=-1) + (m + 1) * np.abs(tops) + 1e-20
    delta = margins.support(m) * size
    for factor in (2.0, 32.0, 1024.0):
        shifted = -blocks
        np.einsum("...ii->...i", shifted)[...] += (tops + factor * delta)[..., None]
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        return (factor + 1) * delta
    return np.full(tops.shape, np.inf)


def _leading_eigenpairs(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = M.shape[0]
    if n <= 200 or k > n // 8:
        return largest_eigenpairs(M, k)
    import scipy.sparse.linalg as spla  # here: small problems do without

    start = np.random.default_rng(0).standard_normal(n)
    try:
        return spla.eigsh(M, k, which="LA", v0=start, tol=1e-9)
    except spla.ArpackError:
        return largest_eigenpairs(M, k)


def _largest_eigenvalues(M: np.ndarray, k: int) -> np.ndarray:
    """Compute eigenvalues that only steer a search; nothing is proved with them."""
    n = M.shape[0]
    if n <= 200 or k > n // 8:
        return largest_eigenvalues(M, k)
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(n)
    return eigsh(M, k, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)


def _minimise(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the best point of a short search of a convex function; any gives a valid bound."""
    best = min((function(low), low), (function(high), high))
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(STEPS if high > low else 0):
        if at_left <= at_right:
            best = min(best, (at_left, left))
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            best = min(best, (at_right, right))
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return best[1]


def _off_diagonal(A: np.ndarray, nonnegative: bool) -> np.ndarray:
    off = np.maximum(A, 0.0) if nonnegative else A.copy()
    np.fill_diagonal(off, 0.0)
    return off


def _bound(
    name: str,
    total: float,
    problem: Problem,
    data: dict[str, float] | None = None,
    rows: float = 0.0,
) -> Bound:
    """Add to a bound of the computed matrix what it needs to hold for the exact one."""
    margin = SAFETY * problem.covariance.rounding(problem.n_nonzero)
    return Bound(name, total + rows + margin, data or {}, rows + margin)
