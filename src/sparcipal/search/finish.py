"""Improve the primal and the dual solution that the ascent of relaxation.py ends with.

Where two directions are about equally good, the ascent shifts weight from one to the other by small
steps, and its estimate of the dual matrix oscillates. Both are improved directly: the best unit
vector in the span of the leading eigenvectors of Z is a candidate of rank one, and the largest
eigenvalues of the dual matrix are pushed down within its box.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import numpy as np

from ..numerics.eigen import largest_eigenpairs, largest_eigenvalues

# Eigenvectors of Z with less weight than this are artefacts of the barrier.
NOISE = 0.01
# These directions are tried in the plane of two eigenvectors.
ANGLES = np.linspace(0.0, np.pi, 64, endpoint=False)
# These fractions of the step from Z to a direction are tried.
PARTS = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
# So many power steps precede the first sweep; each costs one product with the matrix.
POWER_STEPS = 20
# So many eigenvalues are pushed down together.
TOGETHER = 3


def is_ripe(Z: np.ndarray) -> bool:
    """Return whether few directions carry Z, so that what follows here helps; where many do, as in
    pure noise, further sweeps of the ascent help more."""
    return bool(largest_eigenvalues(Z, TOGETHER).sum() > 0.9)


def purified(
    A: np.ndarray, penalty: float, nonnegative: bool, Z: np.ndarray, value: float
) -> tuple[np.ndarray, float]:
    """Move Z towards matrices of rank one while the value grows; return Z and the value."""
    for _ in range(4):
        before = value
        for x in _directions(A, penalty, nonnegative, Z):
            step = np.outer(x, x) - Z
            gains = [objective(A, penalty, Z + part * step) for part in PARTS]
            best = int(np.argmax(gains))
            if gains[best] > value:
                Z, value = Z + PARTS[best] * step, gains[best]
        if value - before < 1e-5 * value:
            break
    return Z, value


def objective(A: np.ndarray, penalty: float, Z: np.ndarray) -> float:
    """Return tr(AZ) - l |Z|_1."""
    return float(np.vdot(A, Z) - penalty * np.abs(Z).sum())


def _directions(
    A: np.ndarray, penalty: float, nonnegative: bool, Z: np.ndarray
) -> list[np.ndarray]:
    """Return unit vectors of large x'Ax - l|x|_1^2 in planes of leading eigenvectors of Z."""
    weights, V = largest_eigenpairs(Z, TOGETHER)
    V = V[:, weights > NOISE]
    if V.shape[1] == 1:
        return [_settled(A, penalty, nonnegative, V[:, 0])]
    found = []
    for a, b in combinations(range(V.shape[1]), 2):
        plane = np.outer(V[:, a], np.cos(ANGLES)) + np.outer(V[:, b], np.sin(ANGLES))
        if nonnegative:
            plane = np.maximum(plane * np.where(plane.sum(axis=0) < 0, -1.0, 1.0), 0.0)
            plane /= np.linalg.norm(plane, axis=0)
        worth = np.einsum("ij,ij->j", plane, A @ plane) - penalty * np.abs(plane).sum(axis=0) ** 2
        peaks = (worth >= np.roll(worth, 1)) & (worth >= np.roll(worth, -1))
        order = sorted(np.flatnonzero(peaks), key=lambda i: -worth[i])
        found += [_settled(A, penalty, nonnegative, plane[:, i]) for i in order[:2]]
    return found


def leading(A: np.ndarray, penalty: float, nonnegative: bool, dual: np.ndarray) -> np.ndarray:
    """Return a unit vector of large x'Ax - l|x|_1^2, by power steps from an eigenvector of `dual`.

    The slope of the penalty at x is l|x|_1, so a step subtracts that from every entry of Ax.
    """
    x = largest_eigenpairs(dual, 1)[1][:, 0]
    x = x if x.sum() >= 0 else -x
    for _ in range(POWER_STEPS):
        pull = A @ x
        size = pull if nonnegative else np.abs(pull)
        left = np.sign(pull) * np.maximum(size - penalty * np.abs(x).sum(), 0.0)
        if not left.any():
            break
        x = left / np.linalg.norm(left)
    x = np.maximum(x, 0.0) if nonnegative else x
    return x / np.linalg.norm(x)


def _settled(A: np.ndarray, penalty: float, nonnegative: bool, x: np.ndarray) -> np.ndarray:
    """Return the best weights for the support and the signs of x, refitted until neither
    changes."""
    x = x if x.sum() >= 0 else -x
    for _ in range(4):
        support = np.flatnonzero((x if nonnegative else np.abs(x)) > 1e-2 * np.abs(x).max())
        signs = np.sign(x[support])
        block = A[np.ix_(support, support)] - penalty * np.outer(signs, signs)
        y = largest_eigenpairs(block, 1)[1][:, 0]
        y = y if y @ x[support] >= 0 else -y
        # The penalty was computed for the old sign, so a weight that changes sign becomes zero.
        y[y * signs <= 0] = 0.0
        new = np.zeros_like(x)
        new[support] = y / np.linalg.norm(y)
        if np.abs(new - x).max() < 1e-4:
            return new
        x = new
    return x


def box(A: np.ndarray, penalty: float, nonnegative: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest A + U of the dual problem, entry by entry; on the
    diagonal U is -l, as no other value helps."""
    low, high = A - penalty, np.full_like(A, np.inf) if nonnegative else A + penalty
    high[np.diag_indices_from(high)] = np.diagonal(low)
    return low, high


def pushed_down(
    limits: tuple[np.ndarray, np.ndarray],
    dual: np.ndarray,
    bound: float,
    value: float,
    tol: float,
    steps: int,
) -> tuple[np.ndarray, float]:
    """Return the dual matrix and its largest eigenvalue after at most `steps` steps towards the
    primal value, within the `limits` of `box`.

    A step is the smallest change, among the entries that can move, that takes all leading
    eigenvalues to the target, to first order: it is Polyak's subgradient step for several
    eigenvectors at once.
    """
    low, high = limits
    target, M = value * (1 + 0.5 * tol), dual
    for _ in range(steps):
        w, V = largest_eigenpairs(M, TOGETHER)
        if w[-1] < bound:
            dual, bound = M, float(w[-1])
        if bound - value <= tol * value:
            break
        close = w > 2 * target - w[-1]
        M = np.clip(M - _step(w[close] - target, V[:, close], low < M, high > M), low, high)
    return dual, bound


def _step(
    excess: np.ndarray, V: np.ndarray, may_fall: np.ndarray, may_rise: np.ndarray
) -> np.ndarray:
    """Return the matrix to subtract so that the eigenvalues lose their excess."""
    excess = np.maximum(excess, 0.0)
    slope = (V * excess) @ V.T
    free = np.where(slope > 0, may_fall, may_rise)
    pairs = list(combinations_with_replacement(range(excess.size), 2))
    parts = []
    for a, b in pairs:
        part = np.outer(V[:, a], V[:, b]) * free
        parts.append(part if a == b else (part + part.T) / 2)
    effects = np.array([[V[:, c] @ part @ V[:, d] for part in parts] for c, d in pairs])
    wanted = np.array([excess[c] if c == d else 0.0 for c, d in pairs])
    shares = np.linalg.lstsq(effects, wanted, rcond=1e-8)[0]
    return sum((share * part for share, part in zip(shares, parts)), np.zeros_like(slope))
