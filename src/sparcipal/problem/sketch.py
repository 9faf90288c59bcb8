"""A few columns V with V V' close to the covariance A, and a proof of what they miss.

`A <= tail I + V V'` holds for every sketch made here: for a unit x with at most s nonzeros x'Ax
<= tail + x'VV'x. The leading eigenpairs with all eigenvalues lowered by t = lambda_(r+1) give the
smallest `tail + OPT(VV')` of the kind; if A = sigma I + C with C of rank r, nothing is lost at
all.

The inequality is proved by a Cholesky factorisation of `tail I + VV' - A`, of order p, or of
order n after the Woodbury formula; where both are too large, by the trace of the Nystrom
residual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from ..numerics import margins
from ..numerics.eigen import (
    DENSE_EIGEN,
    is_definite,
    largest_eigenvalues,
    leading_eigenpairs,
    range_finder,
)
from ..numerics.margins import SKETCH_SAFETY
from .covariance import DENSE_LIMIT, Covariance, DenseCovariance, SparseCovariance

# Order of the largest matrix that is factored for a proof.
FACTOR_LIMIT = 5000
# Eigenvalues below this fraction of the largest count as rounding.
NEGLIGIBLE = 1e-12

KINDS = ("eigen", "randomized", "gaussian", "frequent")


@dataclass(frozen=True)
class Sketch:
    """`A <= tail I + V V'`."""

    V: np.ndarray  # (p, r)
    tail: float  # proved, rounding of the proof included; inf when nothing could be proved
    shift: float  # the level at which the factorisation went through
    proof: str  # "features", "samples", "trace" or "none"
    kind: str
    note: str = ""

    @property
    def rank(self) -> int:
        return int(self.V.shape[1])


@dataclass(frozen=True)
class Spectrum:
    """The leading eigenpairs of A, computed, not proved."""

    values: np.ndarray  # (m,) decreasing
    vectors: np.ndarray  # (p, m)
    trace: float

    @property
    def rank(self) -> int:
        """Return how many eigenvalues are more than rounding."""
        largest = float(self.values[0])
        return max(1, int((self.values > NEGLIGIBLE * largest).sum())) if largest > 0 else 1

    def flat_from(self) -> int | None:
        """Return the smallest j with lambda_(j+1) = ... = lambda_p: A = sigma I + a matrix of rank
        j.

        No eigenvalue behind the j-th exceeds lambda_(j+1), so their sum decides.
        """
        p = self.vectors.shape[0]
        for j in range(1, self.values.size):
            rest = self.trace - float(self.values[:j].sum())
            if rest >= (p - j) * float(self.values[j]) - 1e-10 * self.trace:
                return j
        return None


def spectrum(cov: Covariance, count: int, seed: int = 0, tol: float = 0.0) -> Spectrum:
    """Return the `count` leading eigenpairs (fewer if p is smaller), to rounding or to `tol`."""
    values, vectors = leading_eigenpairs(cov, count, np.random.default_rng(seed), tol)
    return Spectrum(values, vectors, float(cov.diagonal.sum()))


def majorant(cov: Covariance, pairs: Spectrum, rank: int) -> Sketch:
    """Lower the leading eigenpairs by the next eigenvalue t: A <= t I + sum (l_i - t) u_i u_i'."""
    guess = lowered(pairs, rank)
    proved = prove(cov, guess, guess.shift)
    if proved.proof != "trace":
        return proved
    # The trace counts all remaining eigenvalues, so lowering the others gains nothing.
    return prove(cov, lowered(pairs, rank, 0.0), 0.0)


def lowered(pairs: Spectrum, rank: int, by: float | None = None) -> Sketch:
    """Return the majorant, not yet proved; `by` defaults to the next eigenvalue."""
    rank = min(rank, pairs.values.size)
    if by is None:
        by = max(float(pairs.values[rank]), 0.0) if rank < pairs.values.size else 0.0
    V = pairs.vectors[:, :rank] * np.sqrt(np.maximum(pairs.values[:rank] - by, 0.0))
    return Sketch(_columns(V), np.inf, by, "none", "eigen")


def sketch(cov: Covariance, rank: int, *, kind: str = "eigen", seed: int = 0) -> Sketch:
    """Return a rank-r approximation: eigenpairs, randomized SVD, Gaussian projection, or frequent
    directions.

    A rank beyond that of A is reduced, with a note.
    """
    if kind not in KINDS:
        raise ValueError(f"sketch must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    rng = np.random.default_rng(seed)
    level = None
    if kind == "gaussian":
        V = gaussian_projection(cov, rank, rng)
        return prove(cov, Sketch(V, np.inf, 0.0, "none", kind), None)
    if kind == "frequent":
        w, Q = frequent_directions(cov, min(rank, cov.n_features))
    elif kind == "randomized":
        w, Q = range_finder(cov, min(rank, cov.n_features), rng, steps=2)
    else:
        pairs = spectrum(cov, rank + 1, seed)
        w, Q = pairs.values[:rank], pairs.vectors[:, :rank]
    kept = max(1, int((w > NEGLIGIBLE * max(float(w[0]), 0.0)).sum()))
    if kind == "eigen" and kept < pairs.values.size:
        level = max(float(pairs.values[kept]), 0.0)  # the tail is known, so it need not be searched
    note = rank_note(rank, kept)
    V = Q[:, :kept] * np.sqrt(np.maximum(w[:kept], 0.0))
    return replace(prove(cov, Sketch(_columns(V), np.inf, 0.0, "none", kind), level), note=note)


def rank_note(asked: int, used: int) -> str:
    return "" if used >= asked else f"rank={asked} reduced to {used}, the rank of the covariance"


def gaussian_projection(cov: Covariance, rank: int, rng: np.random.Generator) -> np.ndarray:
    """Return V = BR for A = BB' (p x d) and R (d x rank) with N(0, 1/rank) entries: E VV' = A."""
    if isinstance(cov, DenseCovariance):
        R = rng.standard_normal((cov.Y.shape[0], rank)) / np.sqrt(rank)
        return _columns(cov.Y.T @ R)
    if isinstance(cov, SparseCovariance):
        # X'X - mm' = BB' with B = X'(I - ee'), e the constant unit vector, X'e = m.
        n = cov.X.shape[0]
        R = rng.standard_normal((n, rank)) / np.sqrt(rank)
        V = cov.X.T @ R - np.outer(cov.mean, R.sum(axis=0) / np.sqrt(n))
        return _columns(V)
    w, Q = np.linalg.eigh(cov.dense())
    R = rng.standard_normal((w.size, rank)) / np.sqrt(rank)
    return _columns((Q * np.sqrt(np.maximum(w, 0.0))) @ R)


def frequent_directions(cov: Covariance, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenpairs of a sketch that sees every row of the data once.

    It keeps 2 rank rows B. A block of rows joins them, and the squares of all singular values are
    lowered by the (2 rank)-th largest, so that B'B <= A always holds (Liberty 2013, Ghashami et al.
    2016). A given matrix has no rows; those of its square root stand for them.
    """
    size, p = 2 * rank, cov.n_features
    factor = _samples(cov)
    if factor is None:
        w, Q = np.linalg.eigh(cov.dense())
        factor = (Q * np.sqrt(np.maximum(w, 0.0))) @ Q.T, np.zeros(p)
    X, mean = factor
    n = X.shape[0]
    # X'X - mm' = (X - em')'(X - em') for the constant unit vector e, as X'e = m.
    shift = mean / np.sqrt(n)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    B = np.zeros((0, p))
    values, Q = np.zeros(rank), np.zeros((p, rank))
    for start in range(0, n, size):
        block = X[start : start + size]
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        _, sigma, vectors = np.linalg.svd(np.vstack([B, block - shift]), full_matrices=False)
        lowered = float(sigma[size - 1]) ** 2 if sigma.size >= size else 0.0
        squares = np.maximum(sigma[:size] ** 2 - lowered, 0.0)
        B = np.sqrt(squares)[:, None] * vectors[:size]
        found = min(rank, squares.size)
        values, Q = np.zeros(rank), np.zeros((p, rank))
        values[:found], Q[:, :found] = squares[:found], vectors[:found].T
    return values, Q


def _columns(V: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(V, dtype=np.float64)


# --- proofs of the tail ---


def prove(cov: Covariance, guess: Sketch, level: float | None) -> Sketch:
    """Fill in the tail: the smallest level tried at which `level I + VV' - A` is seen to be PSD."""
    factor = _samples(cov)
    p = cov.n_features
    n = factor[0].shape[0] if factor is not None else p
    # A tail of about zero is proved sharply only by the factorisation of order p.
    sharp = level is not None and level <= 1e-6 * float(cov.diagonal.sum()) and p <= DENSE_LIMIT
    if factor is not None and 2 * n <= p and n <= FACTOR_LIMIT and not sharp:
        proved = _prove_by_samples(cov, factor, guess, level)
        if np.isfinite(proved.tail):
            return proved
    if p <= FACTOR_LIMIT:
        return prove_dense(cov, cov.dense(), guess, level)
    if factor is not None and n <= FACTOR_LIMIT:
        return _prove_by_samples(cov, factor, guess, level)
    return _prove_by_trace(cov, guess)


def prove_dense(cov: Covariance, B: np.ndarray, guess: Sketch, level: float | None) -> Sketch:
    """Prove B <= tail I + VV' for B (p x p) by a Cholesky factorisation of order p."""
    K = guess.V @ guess.V.T  # in one place, as it may be large
    K -= B
    if level is None:
        level = _largest_eigenvalue(-K)
    p = K.shape[0]
    size = float(np.abs(np.diagonal(B)).sum() + (guess.V**2).sum()) + (p + 1) * abs(level)
    delta = margins.sketch(p) * size + cov.error_unit * float(cov.error_weights.sum())
    diagonal = np.diagonal(K).copy()
    for attempt in range(24):
        shift = level + (2.0**attempt - 1) * delta
        K[np.diag_indices(p)] = diagonal + shift
        if is_definite(K):
            return _proved(guess, shift, delta, "features")
    return guess


def _proved(guess: Sketch, shift: float, delta: float, proof: str) -> Sketch:
    tail = float(shift + SKETCH_SAFETY * delta)
    return replace(guess, tail=tail, shift=float(shift), proof=proof)


def _samples(cov: Covariance) -> tuple[Any, np.ndarray] | None:
    """Return X (n x p) and m (p,) with A = X'X - mm', or None without data."""
    if isinstance(cov, DenseCovariance):
        return cov.Y, np.zeros(cov.n_features)
    if isinstance(cov, SparseCovariance):
        return cov.X, cov.mean
    return None


def _prove_by_samples(
    cov: Covariance, factor: tuple[Any, np.ndarray], guess: Sketch, level: float | None
) -> Sketch:
    """Prove X'X <= t I + WW', W = [V, m], as X (t I + WW')^-1 X' <= I, of order n."""
    X, mean = factor
    W = np.column_stack([guess.V, mean])
    n, p = X.shape
    gram = X @ X.T
    gram = gram.toarray() if hasattr(gram, "toarray") else np.asarray(gram)
    XW, WW = np.asarray(X @ W), W.T @ W
    trace, spread = float(np.trace(WW)), float(np.einsum("ii->", gram))
    if level is None:
        level = _largest_missed(gram, XW, WW)
    # Rounding is magnified by sqrt(trace / level), so levels below 1e-8 of the trace do not pay.
    level = max(level, 1e-8 * spread)
    gamma = margins.sketch(p)
    stretch = 1.0 + 2.0 * np.sqrt(trace / level)
    delta = (gamma * stretch + margins.sketch_samples(n) + cov.error_unit) * (spread + n * level)
    for attempt in range(24):
        shift = level + (2.0**attempt - 1) * delta
        inner = WW + (shift + gamma * trace) * np.eye(W.shape[1])
        half = scipy.linalg.solve_triangular(np.linalg.cholesky(inner), XW.T, lower=True)
        K = half.T @ half - gram
        K[np.diag_indices(n)] += shift
        if is_definite(K):
            return _proved(guess, shift, delta, "samples")
    return guess


def _largest_missed(gram: np.ndarray, XW: np.ndarray, WW: np.ndarray) -> float:
    """Estimate lambda_max(A - VV') by bisection on the test itself."""
    low, high = 0.0, float(np.linalg.eigvalsh(gram)[-1])
    for _ in range(30):
        level = 0.5 * (low + high)
        inner = WW + level * np.eye(WW.shape[0])
        K = XW @ np.linalg.solve(inner, XW.T) - gram
        K[np.diag_indices(K.shape[0])] += level
        if is_definite((K + K.T) / 2):
            high = level
        else:
            low = level
        if high - low <= 1e-4 * high:
            break
    return high


def _prove_by_trace(cov: Covariance, guess: Sketch) -> Sketch:
    """Bound A - AQ (Q'AQ)^-1 Q'A, which is PSD, by its trace, and compare VV' with the part
    subtracted. A matrix that is not quite PSD is shifted by `psd_shift` first.
    """
    Q = np.linalg.qr(guess.V)[0]
    AQ = cov.matmat(Q) + cov.psd_shift * Q
    QAQ = Q.T @ AQ
    QAQ = (QAQ + QAQ.T) / 2
    condition = _proved_condition(QAQ)
    if condition > 1e10:
        return guess
    root = scipy.linalg.solve_triangular(np.linalg.cholesky(QAQ), AQ.T, lower=True).T
    R = np.linalg.qr(np.column_stack([root, guess.V]))[1]
    signs = np.repeat([1.0, -1.0], guess.rank)
    apart = float(np.linalg.norm((R * signs) @ R.T))
    trace = float(cov.diagonal.sum()) + cov.n_features * cov.psd_shift
    rest = max(trace - float((root * root).sum()), 0.0)
    blur = (margins.nystrom(cov.n_features) + cov.error_unit) * float(cov.error_weights.sum())
    tail = rest + apart + 4 * SKETCH_SAFETY * blur * condition
    return replace(guess, tail=tail, shift=rest + apart, proof="trace")


def _proved_condition(M: np.ndarray) -> float:
    """Return an upper bound on the condition number of a symmetric matrix: its trace over an
    eigenvalue bound proved by Cholesky; infinite where that fails."""
    r, trace = M.shape[0], float(np.trace(M))
    low = 0.5 * float(np.linalg.eigvalsh(M)[0])
    K = M - (low + margins.condition(r) * trace) * np.eye(r)
    return trace / low if low > 0.0 and is_definite(K) else np.inf


def _largest_eigenvalue(M: np.ndarray) -> float:
    n = M.shape[0]
    if n <= DENSE_EIGEN:
        return float(largest_eigenvalues(M, 1)[0])
    from scipy.sparse.linalg import eigsh  # here: small problems do without

    start = np.sqrt(np.abs(np.diagonal(M))) + 1e-300
    return float(eigsh(M, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
