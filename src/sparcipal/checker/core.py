"""Supports that leave the core of a tree; docs/methods/tree.rst, "a core and its extension".

For S that contains a feature outside the core H, pairs outside H x H are split completely: V_aj =
pad for a in H and j outside, V_ja = A_ja^2 / pad, V_jl = |A_jl|. The value of S is at most the
largest of lambda_max(A_HH - U + Diag(pad + the s - 2 largest of V_ab and copies of pad)) and m_j
= A_jj + the s - 1 largest of {A_ja^2 / pad} and {|A_jl|}.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arithmetic import Arithmetic
from .budget import Budget, require
from .covariance import CheckedCovariance
from .pairsplit import Supports, charged
from .records import Extension

BLOCK = 500  # rows of the covariance formed at a time


def check_extension(
    record: Extension,
    s: int,
    nonnegative: bool,
    cov: CheckedCovariance,
    ar: Arithmetic,
    budget: Budget,
) -> None:
    """Refuse the record unless its bound holds for all supports that leave the core."""
    if s > 1:
        budget.work(record.core.size**3 + 1e6, "the core of a tree")
        check_core(record, cov.submatrix(record.core), s, nonnegative, ar)
    rest = np.setdiff1d(np.arange(cov.p), record.core)
    if rest.size:
        check_rest(record, rest, s, nonnegative, cov, ar, budget)


def check_core(
    record: Extension, block: np.ndarray, s: int, nonnegative: bool, ar: Arithmetic
) -> None:
    """M_HH <= t: a row pays one pad, and s - 2 charges that are pads at least."""
    n = block.shape[0]
    none, pad = np.zeros(n, dtype=bool), ar.number(record.pad)
    of = Supports(np.arange(n), none, s - 1, nonnegative, ar.zeros(n), ar.zeros(n) + pad)
    matrix = charged(record.split, 0.5 * (block + block.T), of, ar).matrix
    diagonal = np.diag_indices(n)
    matrix[diagonal] = (matrix[diagonal] + pad) * (1 + ar.eps)
    require(ar.below(matrix, ar.number(record.bound)), "the bound of a core is too large")


def check_rest(
    record: Extension,
    rest: np.ndarray,
    s: int,
    nonnegative: bool,
    cov: CheckedCovariance,
    ar: Arithmetic,
    budget: Budget,
) -> None:
    """m_j <= t for all others: by variances if that is enough, else by the entries themselves."""
    q, core = s - 1, record.core
    pad, t = ar.number(record.pad), ar.number(record.bound)
    budget.work(100.0 * rest.size * (q + 1), "features outside a core")
    left = rest
    if not cov.given:
        # |A_jl|^2 <= A_jj A_ll holds for a covariance of data, up to rounding
        v = ar.maximum(cov.diagonal, 0.0) + 4 * cov.error_unit * cov.weights
        to_core, to_rest = ar.top(v[core] / pad, q), ar.top(ar.sqrt(v[rest]), q)

        def by_variances(rows: np.ndarray) -> np.ndarray:
            own = v[rows][:, None]
            return np.hstack([own * to_core, ar.sqrt(own) * to_rest])

        def by_core(rows: np.ndarray) -> np.ndarray:
            cross = ar.size(cov.submatrix(rows, core), nonnegative)
            return np.hstack([cross * cross / pad, ar.sqrt(v[rows])[:, None] * to_rest])

        left = above(left, t, q, cov, by_variances, ar)
        budget.work(left.size * core.size * _entry(cov), "rows outside a core")
        left = above(left, t, q, cov, by_core, ar)

    def exactly(rows: np.ndarray) -> np.ndarray:
        others = ar.size(cov.submatrix(rows, rest), nonnegative)
        others[np.arange(rows.size), np.searchsorted(rest, rows)] = 0.0
        cross = ar.size(cov.submatrix(rows, core), nonnegative)
        return np.hstack([cross * cross / pad, others])

    budget.work(left.size * cov.p * _entry(cov), "rows outside a core")
    left = above(left, t, q, cov, exactly, ar)
    require(left.size == 0, f"a feature outside the core may matter: {left[:1]}")


def _entry(cov: CheckedCovariance) -> float:
    """Operations for an entry of the covariance."""
    return 20.0 if cov.given else 20.0 + 0.5 * (getattr(cov, "n", None) or 0)


def above(
    features: np.ndarray,
    t: float,
    q: int,
    cov: CheckedCovariance,
    terms: Callable[[np.ndarray], np.ndarray],
    ar: Arithmetic,
) -> np.ndarray:
    """Those features whose m_j, with these terms, is not proved to be at most t."""
    kept = [np.empty(0, dtype=np.intp)]
    for start in range(0, features.size, BLOCK):
        rows = features[start : start + BLOCK]
        m = cov.diagonal[rows] + ar.top_sum(terms(rows), q)
        m = m + 2 * ar.eps * abs(m)
        kept.append(rows[~np.asarray(m <= t, dtype=bool)])
    return np.concatenate(kept)
