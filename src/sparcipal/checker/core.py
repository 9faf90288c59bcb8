"""Supports that leave the core of a proof, bounded with plain NumPy.

For S that contains a feature outside the core H, pairs outside H x H are split completely: V_aj =
pad for a in H and j outside, V_ja = A_ja^2 / pad, V_jl = |A_jl|. The value of S is at most the
largest of lambda_max(A_HH - U + Diag(pad + the s - 2 largest of V_ab and copies of pad)) and m_j
= A_jj + the s - 1 largest of {A_ja^2 / pad} and {|A_jl|}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .pairsplit import EPS, below, certificate, largest_sums, pair_charges, require

BLOCK = 500  # rows of the covariance formed at a time


def check_extension(
    data: dict[str, Any], s: int, nonnegative: bool, cov: Any
) -> tuple[np.ndarray, float]:
    """The core, and the proven bound for all supports that leave it."""
    core, pad, t = np.asarray(data["core"], dtype=np.intp), float(data["pad"]), float(data["bound"])
    p = int(cov.p)
    require(core.size > 0 and bool((np.diff(core) > 0).all()), "a core out of order")
    require(bool(core[0] >= 0 and core[-1] < p), "a core of other features")
    require(bool(np.isfinite(t)) and 0.0 < pad < np.inf, "a pad or a bound that is no number")
    if s > 1:
        _check_core(data["split"], np.asarray(cov.submatrix(core)), s, pad, t, nonnegative)
    rest = np.setdiff1d(np.arange(p), core)
    if rest.size:
        _check_rest(rest, core, s, pad, t, nonnegative, cov)
    return core, t


def _check_core(
    split: dict[str, Any], block: np.ndarray, s: int, pad: float, t: float, nonnegative: bool
) -> None:
    n = block.shape[0]
    # a clipped start was clipped on the matrix with the pad on its diagonal: the same off it
    u, r = certificate(split, block, np.arange(n), nonnegative)
    v = pair_charges(u, r, nonnegative)
    np.fill_diagonal(v, 0.0)
    padded = np.maximum(v, pad)
    # with at most n - 1 entries in a row, the others are pads
    none = np.zeros(n, dtype=bool)
    d = largest_sums(padded, padded, none, np.zeros(n), s - 1)[0]
    d += max(0, s - 2 - (n - 1)) * pad
    matrix = block - u
    matrix[np.diag_indices(n)] = np.diagonal(block) + d * (1 + 8 * EPS) + pad
    require(below(matrix, t), "the core's bound is too large")


def _check_rest(
    rest: np.ndarray,
    core: np.ndarray,
    s: int,
    pad: float,
    t: float,
    nonnegative: bool,
    cov: Any,
) -> None:
    """m_j <= t for all others: by variances if that is enough, else by the entries themselves."""
    q = s - 1
    diagonal = np.asarray(cov.diagonal, dtype=np.float64)
    left = rest
    if not cov.given:
        # |A_jl|^2 <= A_jj A_ll holds for a covariance of data, up to rounding
        v = np.maximum(diagonal, 0.0) + 4 * cov.error_unit * cov.weights
        to_core, to_rest = _top(v[core] / pad, q), _top(np.sqrt(v[rest]), q)
        terms = lambda own: np.hstack([own * to_core, np.sqrt(own) * to_rest])  # noqa: E731
        left = _above(left, t, q, diagonal, lambda rows: terms(v[rows][:, None]))
        left = _above(
            left,
            t,
            q,
            diagonal,
            lambda rows: np.hstack(
                [
                    _top(_size(cov.submatrix(rows, core), nonnegative) ** 2 / pad, q),
                    np.sqrt(v[rows])[:, None] * to_rest,
                ]
            ),
        )

    def exact(rows: np.ndarray) -> np.ndarray:
        others = _size(cov.submatrix(rows, rest), nonnegative)
        others[np.arange(rows.size), np.searchsorted(rest, rows)] = 0.0
        to_core = _size(cov.submatrix(rows, core), nonnegative) ** 2 / pad
        return np.hstack([_top(to_core, q), _top(others, q)])

    left = _above(left, t, q, diagonal, exact)
    require(left.size == 0, "a feature outside the core may matter")


def _above(features: np.ndarray, t: float, q: int, diagonal: np.ndarray, terms: Any) -> np.ndarray:
    """Those features whose m_j, with these terms, is not proved to be at most t."""
    kept = [np.empty(0, dtype=np.intp)]
    for start in range(0, features.size, BLOCK):
        rows = features[start : start + BLOCK]
        m = diagonal[rows] + _top(terms(rows), q).sum(axis=1)
        m = m + (q + 16) * EPS * np.abs(m)
        kept.append(rows[~(m <= t)])
    return np.concatenate(kept)


def _size(block: np.ndarray, nonnegative: bool) -> np.ndarray:
    return np.maximum(block, 0.0) if nonnegative else np.abs(block)


def _top(values: np.ndarray, q: int) -> np.ndarray:
    n = values.shape[-1]
    if q == 0:
        return values[..., :0]
    return values if n <= q else np.partition(values, n - q, axis=-1)[..., n - q :]
