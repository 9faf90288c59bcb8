"""Low-rank bounds (docs/methods/lowrank.rst), redone: a majorant of the covariance, and the sphere
by replaying its cones.

A bound of this family says: `B <= shift I + V V'`, where B is the covariance A, or A with its
small entries traded for a diagonal (`clip`), and `F(c) <= level` for every unit c, with F as in
Asteris et al. (2014): the sum of the s largest (v_i.c)^2 - price_i. Then k components with at
most s nonzeros each explain at most `sum of prices + k (shift + level)`.

The proof of the second part is a tree: cones start as the orthants and are halved at the midpoint
of the named edge. On a leaf with generators g_1..g_r, `level G - T` must be copositive, G_jk =
g_j.g_k and T_jk the sum of the s largest positive (v_i.g_j)(v_i.g_k) - price_i G_jk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget, require
from .cheap import dense, psd_shift
from .covariance import CheckedCovariance
from .family import ALL_KINDS, Case, Family, each_alone
from .margins import term
from .records import LowRank

FACTOR_LIMIT = 5000  # order of the largest matrix that is factored
GRID = 2.0**50  # generators are multiples of 1 / GRID, so that midpoints are exact
CHUNK = 2**25  # bytes of one temporary


def recheck(record: LowRank, case: Case) -> Numbers:
    cov, question, ar, budget = case
    s, k = record.s, question.k
    prices = np.zeros(cov.p) if record.prices is None else record.prices
    require(s >= min(question.s_max, cov.p), "the bound is for fewer nonzeros")
    require(question.nonnegative or not record.nonnegative, "the bound is for one sign")
    require(k == 1 or question.disjoint or not prices.any(), "prices need disjoint supports")
    tail = majorant(record, case)
    top = sphere(record, prices, min(s, cov.p), ar, budget)
    # Entries that were clipped are rounded once more.
    clipped = s * ar.eps * float(np.sort(np.abs(ar.floats(cov.diagonal)))[::-1][:s].sum())
    total = k * (ar.number(tail) + top + cov.rounding(s) + clipped) + ar.array(prices).sum()
    return total + 4 * (cov.p + k) * ar.eps * abs(total)


# --- the majorant ---


def majorant(record: LowRank, case: Case) -> Numbers:
    """Return a level t, near `shift`, for which t I + VV' - B is proved positive semidefinite; inf
    if none is."""
    cov, question, ar, budget = case
    V = ar.array(record.V)
    if record.proof == "features" and cov.p <= FACTOR_LIMIT:
        B = dense(case)
        if record.clip is not None:
            B = _clipped(B, record.clip, record.s, question.nonnegative, ar)
        return _by_features(B, V, record.shift, ar)
    if record.clip is not None:
        return float("inf")
    if record.proof == "samples" and cov.n is not None and cov.n <= FACTOR_LIMIT:
        budget.work(cov.n**3 + cov.n * cov.p * cov.n, "a matrix of samples")
        budget.memory(ar.bytes * cov.n * (5 * cov.n + cov.p), "a matrix of samples")
        return _by_samples(cov, V, record.shift, ar)
    budget.work(40 * cov.p * V.shape[1], "a sketch")
    return _by_trace(V, case)


def _clipped(A: np.ndarray, rho: float, s: int, one_sign: bool, ar: Arithmetic) -> np.ndarray:
    """Return A - U + Diag(d): no unit vector with s nonzeros (and one sign) gets less from it than
    from A."""
    diagonal = np.diag_indices(len(A))
    U = ar.minimum(A, rho) if one_sign else ar.minimum(ar.maximum(A, -rho), rho)
    U[diagonal] = ar.number(0.0)
    B = A - U
    B[diagonal] += ar.top_sum(ar.size(U, one_sign), s - 1)
    return B


def _by_features(B: np.ndarray, V: np.ndarray, shift: float, ar: Arithmetic) -> Numbers:
    n = len(B)
    near = float(np.abs(ar.floats(np.diagonal(B))).sum() + (ar.floats(V) ** 2).sum())
    size = near + (n + 1) * abs(shift)
    t = shift + 4 * term("sketch", n) * ar.step * size
    H = ar.matmul(V, V.T) - B
    H[np.diag_indices(n)] += t
    return t if ar.psd(H, 28 * ar.eps * size) else float("inf")


def _by_samples(cov: CheckedCovariance, V: np.ndarray, shift: float, ar: Arithmetic) -> Numbers:
    """Prove the same with an n x n matrix.

    A = X'X - mm' <= t I + VV' is X'X <= H = t I + WW', W = [V, m], that is X H^-1 X' <= I, or
    t I - XX' + XW (t I + W'W)^-1 W'X' >= 0 by the Woodbury formula.
    """
    if not shift > 0:
        return float("inf")
    gram, XW, W = cov.by_samples(V)
    n, p = len(gram), cov.p
    WW = ar.matmul(W.T, W)
    spread = float(ar.floats(np.trace(WW)))
    gamma = term("sketch", p) * ar.step
    stretch = 1.0 + 2.0 * np.sqrt(spread / shift)
    delta = gamma * stretch + 4 * (n + 16) * ar.step + cov.error_unit
    delta *= max(float(ar.floats(np.trace(gram))), float(np.sum(cov.weights))) + n * shift
    # An error of the matrix acts on it as one of t, which is larger: delta is added to what holds.
    t = shift + 3 * delta
    # A larger small matrix has a smaller inverse: its own rounding stays on the safe side.
    inner = WW + (t + term("sketch", p) * ar.eps * spread) * ar.eye(W.shape[1])
    K = ar.matmul(XW, ar.solve(inner, XW.T)) - gram
    K = (K + K.T) / 2
    K[np.diag_indices(n)] += t
    return t + (0.0 if ar.exact else delta) if ar.factors(K) else float("inf")


def _by_trace(V: np.ndarray, case: Case) -> Numbers:
    """Prove it by a trace: A - AQ (Q'AQ)^-1 Q'A (Nystrom) is PSD for any Q.

    A matrix that is not quite PSD is raised by what is missing first.
    """
    cov, ar, shift = case.cov, case.ar, psd_shift(case)
    Q = ar.array(np.linalg.qr(ar.floats(V))[0])
    AQ = cov.times(Q) + shift * Q
    QAQ = ar.matmul(Q.T, AQ)
    QAQ = (QAQ + QAQ.T) / 2
    # The condition number enters the margin: eigenvalues are at most the trace, and at least what
    # a factorisation proves.
    r, near = len(QAQ), ar.floats(QAQ)
    size, low = float(np.trace(near)), 0.5 * float(np.linalg.eigvalsh(near)[0])
    if not (low > 1e-11 * size and ar.psd(QAQ - low * ar.eye(r))):
        return float("inf")
    # |RR' - VV'| for R = AQ (Q'AQ)^-1/2, with RR' as AQ times the solution.
    solved = ar.solve(QAQ, AQ.T)
    explained = (AQ.T * solved).sum()
    apart = _apart(AQ, solved.T, V, ar)
    trace = cov.diagonal.sum() + cov.p * shift
    margin = 4 * term("sketch", cov.p) * ar.eps + cov.error_unit
    margin *= 4 * float(np.sum(cov.weights)) * (size / low)
    return ar.maximum(trace - explained, 0.0) + apart + margin


def _apart(AQ: np.ndarray, solved: np.ndarray, V: np.ndarray, ar: Arithmetic) -> Numbers:
    """Return the Frobenius norm of AQ solved' - VV' (p x p), or more."""
    if not ar.exact:
        left, right = np.hstack([AQ, -V]), np.hstack([solved, V])
        return float(np.linalg.norm(np.linalg.qr(left)[1] @ np.linalg.qr(right)[1].T))
    # |RR'|^2 - 2 |R'V|^2 + |V'V|^2; R'R is similar to Q'AAQ (Q'AQ)^-1
    own, cross = ar.matmul(solved.T, AQ), ar.matmul(V.T, V)
    mixed = (ar.matmul(V.T, AQ) * ar.matmul(V.T, solved)).sum()
    return ar.sqrt((own * own.T).sum() - 2 * mixed + (cross * cross).sum())


# --- the sphere ---


class _Sketch(NamedTuple):
    """The rows of V, the longest first, in units of its largest entry; prices, squared lengths."""

    V: np.ndarray
    prices: np.ndarray
    sizes: np.ndarray
    s: int
    one_sign: bool


def sphere(record: LowRank, prices: np.ndarray, s: int, ar: Arithmetic, budget: Budget) -> Numbers:
    """Return a bound on F over the sphere, near `level`, if every leaf of the tree proves it; else
    inf."""
    r = record.V.shape[1]
    unit = 2.0 ** np.ceil(np.log2(max(float(np.abs(record.V).max()), 1e-150)))
    V = ar.array(record.V) / unit
    sizes = (V * V).sum(axis=1)
    order = np.argsort(-ar.floats(sizes), kind="stable")
    prices = ar.array(prices) / unit**2
    sketch = _Sketch(V[order], prices[order], sizes[order], s, record.nonnegative)
    level = record.level / unit**2
    # Entries are off by e |g_j||g_k| at most, and sum_jk a_j a_k |g_j||g_k| <= r |c|^2 in an
    # orthant.
    longest = float(ar.floats(sketch.sizes[:s]).sum())
    margin = r * ar.step * ((4 * r + s + 20) * longest + (6 * r + 12) * abs(level)) + 1e-300
    tested = level + margin
    proved = (tested + (0.0 if ar.exact else margin)) * unit**2
    # F is never larger than what the s longest rows could give.
    if ar.at_most(ar.top(ar.maximum(sizes - prices, 0.0), s).sum(), tested):
        return proved
    points, leaves = replay(record.tree, r, record.nonnegative, budget)
    generators = ar.array(points)
    # r^2 pairs of each leaf: a few leaves at a time, for a short tree names many of them.
    step = max(1, CHUNK // (8 * r * r))
    for start in range(0, len(leaves), step):
        pairs, place = _pairs(leaves[start : start + step], len(points))
        budget.work(len(pairs) * min(len(V), max(4 * s, 256)) * (r + 8), "pairs of generators")
        T = _pair_sums(sketch, generators, pairs, ar)
        G = (generators[pairs[:, 0]] * generators[pairs[:, 1]]).sum(axis=1)
        if not _copositive(tested * G - T, place, ar):
            return float("inf")
    return proved


def _copositive(S: np.ndarray, place: np.ndarray, ar: Arithmetic) -> bool:
    """Return whether all leaves are: `place` says where in S the table of each leaf is found."""
    step = max(1, CHUNK // (place.shape[1] ** 2 * ar.bytes))
    return all(
        bool(copositive(S[place[start : start + step]], ar).all())
        for start in range(0, len(place), step)
    )


def replay(
    tree: np.ndarray, r: int, one_sign: bool, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """Return generators (m x r) and leaves (rows of generator numbers) of a tree, given by
    levels."""
    free = r if one_sign else r - 1
    # Codes name leaves and halved cones; every leaf has r generators and r^2 pairs of them.
    budget.work(40 * len(tree) * r * r, "a tree of cones")
    budget.memory(64 * len(tree) * r, "a tree of cones")
    bits = (np.arange(2**free)[:, None] >> np.arange(free)) & 1
    if not one_sign:
        bits = np.column_stack([np.zeros(len(bits), dtype=bits.dtype), bits])
    # Any order of the orthants is a covering; the solver counts with the last coordinate fastest.
    bits = bits[np.lexsort(bits.T[::-1])]
    cones = np.arange(r) + r * bits
    table = np.zeros((2 * r + len(tree), r))  # a halved cone adds one point at most
    table[:r], table[r : 2 * r] = np.eye(r), -np.eye(r)
    known: dict[int, int] = {}
    count, position, leaves = 2 * r, 0, []
    while len(cones):
        budget.work(1e5, "a tree of cones")  # of a level, however few its cones are
        codes = tree[position : position + len(cones)].astype(np.int64)
        position += len(cones)
        whole = len(codes) == len(cones) and not (codes >= r * r).any()
        require(whole, "the tree of cones is malformed")
        leaves.append(cones[codes < 0])
        cones, codes = cones[codes >= 0], codes[codes >= 0]
        first, second = codes // r, codes % r
        require(not (first == second).any(), "the tree of cones halves an edge that is a point")
        rows = np.arange(len(cones))
        ends = np.sort(np.column_stack([cones[rows, first], cones[rows, second]]), axis=1)
        keys, back = np.unique(ends[:, 0] * 2**31 + ends[:, 1], return_inverse=True)
        fresh = [key for key in keys.tolist() if key not in known]
        known.update({key: count + i for i, key in enumerate(fresh)})
        if fresh:
            a, b = np.array(fresh) // 2**31, np.array(fresh) % 2**31
            middle = 0.5 * (table[a] + table[b])
            require(bool((middle * GRID == np.rint(middle * GRID)).all()), "cones off the grid")
            table[count : count + len(fresh)] = middle
            count += len(fresh)
        half = np.array([known[key] for key in keys.tolist()], dtype=np.int64)[back]
        halves = np.repeat(cones, 2, axis=0)
        halves[2 * rows, first] = half
        halves[2 * rows + 1, second] = half
        cones = halves
    require(position == len(tree), "the tree of cones is malformed")
    return table[:count], np.concatenate(leaves)


def _pairs(leaves: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs of generators that share a leaf, and where each leaf's r x r table
    finds them."""
    low = np.minimum(leaves[:, :, None], leaves[:, None, :])
    high = np.maximum(leaves[:, :, None], leaves[:, None, :])
    keys, place = np.unique(low * count + high, return_inverse=True)
    pairs = np.column_stack([keys // count, keys % count])
    return pairs, place.reshape(low.shape)


def _pair_sums(
    sketch: _Sketch, points: np.ndarray, pairs: np.ndarray, ar: Arithmetic
) -> np.ndarray:
    """Return T for each pair of points; rows are sorted by length, short ones cannot be chosen."""
    V, prices, sizes, s, one_sign = sketch
    p = len(V)
    out = ar.zeros(len(pairs))
    left, rows = np.arange(len(pairs)), min(p, max(4 * s, 256))
    while left.size:
        step, again = max(1, CHUNK // (rows * ar.bytes)), [left[:0]]
        for start in range(0, len(left), step):
            part = left[start : start + step]
            a, b = points[pairs[part, 0]], points[pairs[part, 1]]
            inner = (a * b).sum(axis=1)
            x, y = ar.matmul(a, V[:rows].T), ar.matmul(b, V[:rows].T)
            gains = ar.maximum(x, 0.0) * ar.maximum(y, 0.0) if one_sign else x * y
            gains = ar.maximum(gains - prices[:rows] * inner[:, None], 0.0)
            chosen = ar.top(gains, s)
            out[part] = chosen.sum(axis=1)
            if rows < p:
                reach = ar.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)) + inner
                enough = np.asarray(sizes[rows] * reach <= 2 * chosen[:, -1], dtype=bool)
                again.append(part[~enough])
        left = np.concatenate(again)
        rows = min(p, 4 * rows)
    return out


def copositive(S: np.ndarray, ar: Arithmetic) -> np.ndarray:
    """Return which of the matrices S (m x r x r) some elimination shows to be copositive.

    Eliminating a_k >= 0 from a quadratic form with pivot q > 0 and row b leaves at least
    rest - b b' / q, and also at least rest - b_- b_-' / q with b_- the negative part of b.
    """
    done = ar.eliminates(S)
    for backwards in (False, True):
        open_ = np.flatnonzero(~done)
        if open_.size == 0:
            break
        R = S[open_][:, ::-1, ::-1].copy() if backwards else S[open_].copy()
        good = np.ones(len(R), dtype=bool)
        for k in range(S.shape[1]):
            pivot = R[:, k, k]
            good &= np.asarray(pivot > 0, dtype=bool)
            b = ar.minimum(R[:, k + 1 :, k], 0.0)
            scaled = b / np.where(good, pivot, 1.0)[:, None]
            R[:, k + 1 :, k + 1 :] -= scaled[:, :, None] * b[:, None, :]
        done[open_[good]] = True
    return done


FAMILIES = (Family("lowrank", LowRank, recheck, kinds=ALL_KINDS, margin=each_alone),)
