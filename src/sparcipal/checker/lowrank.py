"""Low-rank bounds, redone: the majorant by a Cholesky factorisation, the sphere by replaying its
cones.

A bound of this family says: `B <= shift I + V V'`, where B is the covariance A, or A with its
small entries traded for a diagonal (`clip`), and `F(c) <= level` for every unit c, with F as in
Asteris et al. (2014): the sum of the s largest (v_i.c)^2 - price_i. Then k components with at
most s nonzeros each explain at most `sum of prices + k (shift + level)`.

The proof of the second part is a tree: cones start as the orthants and are halved at the midpoint
of the named edge. On a leaf with generators g_1..g_r, `level G - T` must be copositive, G_jk =
g_j.g_k and T_jk the sum of the s largest positive (v_i.g_j)(v_i.g_k) - price_i G_jk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cheap import psd_shift
from .covariance import EPS, CheckedCovariance, Question, factorises
from .family import Family
from .records import LowRank

FACTOR_LIMIT = 5000  # order of the largest matrix that is factored
GRID = 2.0**50  # generators are multiples of 1 / GRID, so that midpoints are exact
CHUNK = 2**22  # numbers in one temporary


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """The upper bound that the data of a low-rank bound prove, in the units of `cov`."""
    V = np.ascontiguousarray(data["V"], dtype=np.float64)
    s, level, shift = int(data["s"]), float(data["level"]), float(data["shift"])
    one_sign = bool(data["nonnegative"])
    prices = np.asarray(data.get("prices", np.zeros(cov.p)), dtype=np.float64)
    if V.ndim != 2 or V.shape[0] != cov.p or prices.shape != (cov.p,):
        raise ValueError("the factor does not fit the data")
    if not (np.isfinite(V).all() and np.isfinite([level, shift]).all() and (prices >= 0).all()):
        raise ValueError("the factor or a number beside it is not finite")
    if s < min(question.s_max, cov.p) or (one_sign and not question.nonnegative):
        raise ValueError("the bound is for another question")
    if prices.any() and question.k > 1 and not question.disjoint:
        raise ValueError("prices need disjoint supports")
    clip = None if data.get("clip") is None else float(data["clip"])
    tail = majorant(cov, V, data["proof"], shift, clip, s, question.nonnegative)
    top = sphere(V, min(s, cov.p), one_sign, prices, level, np.asarray(data["tree"]))
    # Entries that were clipped are rounded once more.
    largest = float(np.sort(np.abs(cov.diagonal))[::-1][:s].sum())
    alone = tail + top + cov.rounding(s) + s * EPS * largest
    total = question.k * alone + float(prices.sum())
    return total + 4 * (cov.p + question.k) * EPS * abs(total)


# --- the majorant ---


def majorant(
    cov: CheckedCovariance,
    V: np.ndarray,
    proof: str,
    shift: float,
    clip: float | None,
    s: int,
    one_sign: bool,
) -> float:
    """A level t, near `shift`, for which t I + VV' - B is proved positive semidefinite; inf if
    none is.
    """
    if proof == "features" and cov.p <= FACTOR_LIMIT:
        B = cov.dense()
        return _factored(B if clip is None else clipped(B, clip, s, one_sign), V, shift, cov)
    if clip is not None:
        return np.inf
    if proof == "samples" and cov._mean is not None and cov._left.shape[0] <= FACTOR_LIMIT:
        return _factored_by_samples(cov, V, shift)
    return _by_trace(cov, V)


def clipped(A: np.ndarray, rho: float, s: int, one_sign: bool) -> np.ndarray:
    """A - U + Diag(d): no unit vector with s nonzeros (and one sign) gets less from it than from
    A.
    """
    U = np.minimum(A, rho) if one_sign else np.clip(A, -rho, rho)
    np.fill_diagonal(U, 0.0)
    charged = np.maximum(U, 0.0) if one_sign else np.abs(U)
    n = A.shape[0]
    count = min(s - 1, n - 1)
    d = np.sort(charged, axis=1)[:, n - count :].sum(axis=1) if count else np.zeros(n)
    B = A - U
    B[np.diag_indices(n)] += d * (1 + (s + 8) * EPS)
    return B


def _factored(B: np.ndarray, V: np.ndarray, shift: float, cov: CheckedCovariance) -> float:
    """lambda_max(B - VV') <= the value returned, near shift, if the Cholesky factorisation
    exists.
    """
    M = B - V @ V.T
    n = M.shape[0]
    size = float(np.abs(np.diagonal(B)).sum() + (V * V).sum()) + (n + 1) * abs(shift)
    delta = 2 * (n + 16) * EPS * size + cov.error_unit * float(cov.weights.sum())
    level = shift + 3 * delta
    K = -M
    K[np.diag_indices(n)] += level
    return level + delta if factorises(K) else np.inf


def _factored_by_samples(cov: CheckedCovariance, V: np.ndarray, shift: float) -> float:
    """The same with an n x n matrix.

    A = X'X - mm' <= t I + VV' is X'X <= H = t I + WW', W = [V, m], that is X H^-1 X' <= I, or
    t I - XX' + XW (t I + W'W)^-1 W'X' >= 0 by the Woodbury formula.
    """
    X: Any = cov._left
    mean: Any = cov._mean
    W = np.column_stack([V, mean])
    p, n = W.shape[0], X.shape[0]
    K = X @ X.T
    K = K.toarray() if hasattr(K, "toarray") else np.array(K)
    XW, WW = np.asarray(X @ W), W.T @ W
    weight = float(cov.weights.sum())
    gamma = 2 * (p + 16) * EPS
    if not shift > 0:
        return np.inf
    stretch = 1.0 + 2.0 * np.sqrt(float(np.trace(WW)) / shift)
    delta = (gamma * stretch + 4 * (n + 16) * EPS + cov.error_unit) * (weight + n * shift)
    level = shift + 3 * delta
    # A larger small matrix has a smaller inverse: its own rounding stays on the safe side.
    inner = WW + (level + gamma * float(np.trace(WW))) * np.eye(W.shape[1])
    K = XW @ np.linalg.solve(inner, XW.T) - K
    K = (K + K.T) / 2
    K[np.diag_indices(n)] += level
    return level + delta if factorises(K) else np.inf


def _by_trace(cov: CheckedCovariance, V: np.ndarray) -> float:
    """Nystrom: A - AQ (Q'AQ)^-1 Q'A is PSD for any Q, so its trace bounds its eigenvalues.

    A matrix that is not quite PSD is raised by what is missing first.
    """
    Q, shift = np.linalg.qr(V)[0], psd_shift(cov)
    if cov._mean is None:
        AQ = cov._left @ Q + shift * Q
    else:
        mean: Any = cov._mean
        AQ = cov._left.T @ (cov._left @ Q) - np.outer(mean, mean @ Q)
    QAQ = Q.T @ AQ
    QAQ = (QAQ + QAQ.T) / 2
    # The condition number enters the margin: eigenvalues are at most the trace, and at least what
    # a factorisation proves.
    r, size = QAQ.shape[0], float(np.trace(QAQ))
    low = 0.5 * float(np.linalg.eigvalsh(QAQ)[0])
    proved = factorises(QAQ - (low + 2 * (r + 4) * EPS * size) * np.eye(r))
    if not (low > 1e-11 * size and proved):
        return np.inf
    root = np.linalg.solve(np.linalg.cholesky(QAQ), AQ.T).T
    both = np.column_stack([root, V])
    signs = np.repeat([1.0, -1.0], V.shape[1])
    R = np.linalg.qr(both)[1]
    apart = float(np.linalg.norm(R @ (signs[:, None] * R.T)))
    trace = float(cov.diagonal.sum()) + cov.p * shift
    blur = (8 * (cov.p + 16) * EPS + cov.error_unit) * float(cov.weights.sum()) * (size / low)
    return max(trace - float((root * root).sum()), 0.0) + apart + 4 * blur


# --- the sphere ---


def sphere(
    V: np.ndarray, s: int, one_sign: bool, prices: np.ndarray, level: float, tree: np.ndarray
) -> float:
    """A bound on F over the sphere, near `level`, if every leaf of the tree proves it; else inf."""
    r = V.shape[1]
    if r > 16 or tree.ndim != 1 or tree.dtype != np.int8:
        raise ValueError("the tree of cones is malformed")
    unit = 2.0 ** np.ceil(np.log2(max(float(np.abs(V).max()), 1e-150)))
    V, prices, level = V / unit, prices / unit**2, level / unit**2
    sizes = (V * V).sum(axis=1)
    order = np.argsort(-sizes, kind="stable")
    V, prices, sizes = V[order], prices[order], sizes[order]
    margin = _rounding(r, s, float(sizes[:s].sum()), level)
    tested = level + margin
    # F is never larger than what the s longest rows could give.
    if np.sort(np.maximum(sizes - prices, 0.0))[::-1][:s].sum() <= tested:
        return (tested + margin) * unit**2
    points, leaves = replay(tree, r, one_sign)
    pairs, place = _pairs(leaves, len(points))
    T = pair_sums(V, sizes, prices, s, one_sign, points, pairs)
    G = np.einsum("ij,ij->i", points[pairs[:, 0]], points[pairs[:, 1]])
    S = tested * G - T
    step = max(1, CHUNK // (r * r))
    for start in range(0, len(leaves), step):
        if not copositive(S[place[start : start + step]]).all():
            return np.inf
    return (tested + margin) * unit**2


def _rounding(r: int, s: int, longest: float, level: float) -> float:
    """Entries are off by e |g_j||g_k| at most, and sum_jk a_j a_k |g_j||g_k| <= r |c|^2 in an
    orthant.
    """
    return r * EPS * ((4 * r + s + 20) * longest + (6 * r + 12) * abs(level)) + 1e-300


def replay(tree: np.ndarray, r: int, one_sign: bool) -> tuple[np.ndarray, np.ndarray]:
    """Generators (m x r) and leaves (rows of generator numbers) of a tree given level by level."""
    free = r if one_sign else r - 1
    bits = (np.arange(2**free)[:, None] >> np.arange(free)) & 1
    if not one_sign:
        bits = np.column_stack([np.zeros(len(bits), dtype=bits.dtype), bits])
    # Any order of the orthants is a covering; the solver counts with the last coordinate fastest.
    bits = bits[np.lexsort(bits.T[::-1])]
    cones = np.arange(r) + r * bits
    points = [np.vstack([np.eye(r), -np.eye(r)])]
    known: dict[int, int] = {}
    count, position, leaves = 2 * r, 0, []
    while len(cones):
        codes = tree[position : position + len(cones)].astype(np.int64)
        position += len(cones)
        if len(codes) < len(cones) or (codes >= r * r).any():
            raise ValueError("the tree of cones is malformed")
        leaves.append(cones[codes < 0])
        cones, codes = cones[codes >= 0], codes[codes >= 0]
        first, second = codes // r, codes % r
        if (first == second).any():
            raise ValueError("the tree of cones halves an edge that is a point")
        rows = np.arange(len(cones))
        ends = np.sort(np.column_stack([cones[rows, first], cones[rows, second]]), axis=1)
        keys, back = np.unique(ends[:, 0] * 2**31 + ends[:, 1], return_inverse=True)
        fresh = [key for key in keys.tolist() if key not in known]
        known.update({key: count + i for i, key in enumerate(fresh)})
        if fresh:
            table = np.concatenate(points)
            a, b = np.array(fresh) // 2**31, np.array(fresh) % 2**31
            points = [table, 0.5 * (table[a] + table[b])]
            count += len(fresh)
        middle = np.array([known[key] for key in keys.tolist()], dtype=np.int64)[back]
        halves = np.repeat(cones, 2, axis=0)
        halves[2 * rows, first] = middle
        halves[2 * rows + 1, second] = middle
        cones = halves
    table = np.concatenate(points)
    if position != len(tree) or not (table * GRID == np.rint(table * GRID)).all():
        raise ValueError("the tree of cones is malformed")
    return table, np.concatenate(leaves)


def _pairs(leaves: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct pairs of generators that share a leaf, and where each leaf's r x r table finds
    them.
    """
    low = np.minimum(leaves[:, :, None], leaves[:, None, :])
    high = np.maximum(leaves[:, :, None], leaves[:, None, :])
    keys, place = np.unique(low * count + high, return_inverse=True)
    pairs = np.column_stack([keys // count, keys % count])
    return pairs, place.reshape(low.shape)


def pair_sums(
    V: np.ndarray,
    sizes: np.ndarray,
    prices: np.ndarray,
    s: int,
    one_sign: bool,
    points: np.ndarray,
    pairs: np.ndarray,
) -> np.ndarray:
    """T for each pair of points; rows are sorted by length, and short rows cannot be chosen."""
    p = len(V)
    out = np.zeros(len(pairs))
    left, rows = np.arange(len(pairs)), min(p, max(4 * s, 256))
    while left.size:
        step, again = max(1, CHUNK // rows), []
        for start in range(0, len(left), step):
            part = left[start : start + step]
            a, b = points[pairs[part, 0]], points[pairs[part, 1]]
            inner = (a * b).sum(axis=1)
            x, y = a @ V[:rows].T, b @ V[:rows].T
            gains = np.maximum(x, 0.0) * np.maximum(y, 0.0) if one_sign else x * y
            gains -= prices[:rows] * inner[:, None]
            chosen = np.maximum(np.partition(gains, rows - s, axis=1)[:, rows - s :], 0.0)
            out[part] = chosen.sum(axis=1)
            if rows < p:
                reach = (np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)) + inner) / 2
                again.append(part[sizes[rows] * reach > chosen.min(axis=1)])
        left = np.concatenate(again) if again else left[:0]
        rows = min(p, 4 * rows)
    return out


def copositive(S: np.ndarray) -> np.ndarray:
    """Which of the matrices S (m x r x r) some elimination shows to be copositive.

    Eliminating a_k >= 0 from a quadratic form with pivot q > 0 and row b leaves at least
    rest - b b' / q, and also at least rest - b_- b_-' / q with b_- the negative part of b.
    """
    done = np.zeros(len(S), dtype=bool)
    for negative_only, backwards in ((False, False), (True, False), (True, True)):
        open_ = np.flatnonzero(~done)
        R = S[open_][:, ::-1, ::-1].copy() if backwards else S[open_].copy()
        good = np.ones(len(R), dtype=bool)
        for k in range(S.shape[1]):
            pivot = R[:, k, k]
            good &= pivot > 0
            b = np.minimum(R[:, k + 1 :, k], 0.0) if negative_only else R[:, k + 1 :, k].copy()
            scaled = b / np.where(pivot > 0, pivot, 1.0)[:, None]
            R[:, k + 1 :, k + 1 :] -= scaled[:, :, None] * b[:, None, :]
        done[open_[good]] = True
    return done


FAMILIES = (Family("lowrank", LowRank, recheck, overlapping=True, raw=True),)
