"""Replay a branch-and-bound proof with plain NumPy.

Nothing of the solver is trusted: the supports of every node are rebuilt from the moves in the
log, V is rebuilt from (U, R) so that V_ij V_ji >= U_ij^2 holds in floating point, row sums are
recomputed and rounded up, and each claim is one Cholesky factorisation with its margin. A log
that does not prove the bound it carries gives infinity.

The steps of a log are `problem`, `split` and `node`; the names are those of the solver's log. The
mathematics: for a unit x with support in S, forced <= S <= alive, |S| <= s,

    x'Ax - price(S) <= x'Mx,   M = A - U + Diag(d),

where d_i is the largest sum of V_ij - price_j over what S may contain besides i, minus price_i.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from .core import check_extension
from .family import Family
from .pairsplit import (
    EPS,
    Unproved,
    below,
    certificate,
    factorises,
    largest_sums,
    pair_charges,
    require,
)
from .records import Tree

MOST_SUPPORTS = 200_000  # of one leaf


def recheck(data: dict[str, Any], cov: Any, problem: Any) -> float:
    """The bound that the log proves for one component of `cov`, or infinity.

    `data` holds the `log` and, if the log speaks of a core of the features only, the `extension`
    that takes care of all others.
    """
    try:
        header = data["log"][0]
        s = int(header["s"])
        if len(problem.cardinalities) != 1 or not problem.cardinalities[0] <= s <= cov.p:
            return np.inf
        if header["nonnegative"] and not problem.nonnegative:
            return np.inf
        if np.any(header.get("prices", 0.0)):  # less than the value is what such a log bounds
            return np.inf
        core, outside = np.arange(cov.p), -np.inf
        if "extension" in data:
            core, outside = check_extension(data["extension"], s, bool(header["nonnegative"]), cov)
        a = np.asarray(cov.submatrix(core), dtype=np.float64)
        bound = max(replay(data["log"], a), outside)
    except (Unproved, KeyError, IndexError, TypeError, ValueError, AttributeError):
        return np.inf
    return bound + float(cov.rounding(s))


def replay(log: list[dict[str, Any]], a: np.ndarray) -> float:
    """Go through all steps; the bound of the log if every support is accounted for."""
    header = log[0]
    prices = np.asarray(header.get("prices", 0.0))
    if header["step"] != "problem" or not (prices >= 0.0).all():
        raise Unproved("no problem stated")
    bound = float(header["bound"])
    if not a.any() and "pads" not in header and bound >= -float(prices.min()):
        return bound  # of a matrix of zeros
    return _Replay(log, np.array((a + a.T) / 2)).run()


class _Replay:
    def __init__(self, log: list[dict[str, Any]], a: np.ndarray) -> None:
        header, p = log[0], a.shape[0]
        # the certificates are in these units; a power of two, so that nothing is rounded
        self.unit = float(header["unit"])
        require(np.frexp(self.unit)[0] == 0.5, "a unit that is no power of two")
        largest = float(np.abs(a).max(initial=0.0)) / self.unit
        fits = 2.0**-40 <= largest <= 2.0**40 or (largest == 0.0 and self.unit == 1.0)
        require(fits, "a unit that does not fit the matrix")
        a = a / self.unit
        self.log, self.p = log, p
        self.s, self.nonnegative = int(header["s"]), bool(header["nonnegative"])
        require(1 <= self.s <= p, "supports larger than the number of features")
        self.price = np.zeros(p)
        if "prices" in header:
            self.price = np.asarray(header["prices"], dtype=np.float64) / self.unit
        # with pads, supports may also contain features outside, each at this charge to a row
        self.pad = np.asarray(header.get("pads", np.zeros(p)), dtype=np.float64) / self.unit
        self.padded = bool(self.pad.any())
        require(self.pad.shape == (p,) and bool((self.pad >= 0.0).all()), "pads below zero")
        require(not (self.padded and header.get("twins")), "twins beside features outside")
        self.leader_of, self.factor = np.arange(p), np.ones(p)
        self.a, error = self._exact_twins(a, header.get("twins") or {})
        self.bound = float(header["bound"]) / self.unit
        if not np.isfinite(self.a).all() or not np.isfinite(self.bound):
            raise Unproved("numbers that are not finite")
        self.t = self.bound - error
        self.entered: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.left: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        # nodes whose children have not all appeared: what is missing
        self.pending: dict[int, dict[str, Any]] = {}

    def _exact_twins(self, a: np.ndarray, twins: dict[str, Any]) -> tuple[np.ndarray, float]:
        """The matrix with exact multiples, and s times the largest change."""
        if len(twins) == 0:
            return a, 0.0
        features = np.asarray(twins["features"], dtype=np.intp)
        self.leader_of[features] = np.asarray(twins["leaders"], dtype=np.intp)
        self.factor[features] = np.asarray(twins["factors"], dtype=np.float64)
        size = np.abs(self.factor)
        chained = self.leader_of[self.leader_of] != self.leader_of
        if chained.any() or not (size <= 1.0).all() or self.factor[self.leader_of].min() < 1.0:
            raise Unproved("twins that are not multiples of a leader")
        if self.nonnegative and self.factor.min() <= 0.0:
            raise Unproved("negative twins")
        exact = a[np.ix_(self.leader_of, self.leader_of)] * np.outer(self.factor, self.factor)
        change = float(np.abs(exact - a).max()) + 4 * EPS * float(np.abs(a).max())
        return exact, self.s * change

    def run(self) -> float:
        roots = 0
        for position, step in enumerate(self.log):
            if step["step"] != "node":
                continue
            roots += step["parent"] == -1
            alive, forced = self._enter(step)
            self.entered[position] = alive, forced
            alive, forced = self._apply_passes(step, alive, forced)
            self.left[position] = alive, forced
            self._settle(position, step, alive, forced)
        if roots != 1 or self.pending:
            raise Unproved("supports are missing")
        return self.bound * self.unit

    # --- how nodes follow one another ---

    def _enter(self, step: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        parent, side = int(step["parent"]), step["side"]
        if parent == -1:
            return np.ones(self.p, dtype=bool), np.zeros(self.p, dtype=bool)
        moved = np.asarray(step["moved"], dtype=np.intp)
        alive, forced = (mask.copy() for mask in self.left[parent])
        missing = self.pending[parent]
        if side not in missing or not alive[moved].all():
            raise Unproved("a child that does not belong to its parent")
        if side == "shrink":
            (i,) = moved
            missing["shrink"].remove(int(i))
            alive[i] = forced[i] = False
            if not missing["shrink"]:
                del self.pending[parent]
            return alive, forced
        if forced[moved].any():
            raise Unproved("branching on a forced feature")
        missing[side] = moved
        if missing["in"] is not None and missing["out"] is not None:
            self._check_branch(missing["in"], missing["out"])
            del self.pending[parent]
        if side == "in":
            forced[moved] = True
        else:
            alive[moved] = False
        return alive, forced

    def _check_branch(self, into: np.ndarray, out: np.ndarray) -> None:
        """One feature, in or out; out with it only features that it can replace."""
        (j,) = into
        follow = out[out != j]
        if follow.size == out.size:
            raise Unproved("the two sides speak of different features")
        replaced = (
            (self.leader_of[follow] == self.leader_of[j])
            & (np.abs(self.factor[follow]) <= abs(self.factor[j]))
            & (self.price[follow] >= self.price[j])
        )
        if not replaced.all():
            raise Unproved("a feature is excluded without reason")

    def _apply_passes(
        self, step: dict[str, Any], alive: np.ndarray, forced: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        for one in step["passes"]:
            out = np.asarray(one["out"], dtype=np.intp)
            into = np.asarray(one["in"], dtype=np.intp)
            self._check_fixing(int(one["split"]), alive, forced, out, into)
            alive, forced = alive.copy(), forced.copy()
            if np.intersect1d(out, into).size or not alive[into].all():
                return np.zeros_like(alive), np.zeros_like(forced)
            forced[into] = True
            alive[out] = False
        return alive, forced

    def _settle(
        self, position: int, step: dict[str, Any], alive: np.ndarray, forced: np.ndarray
    ) -> None:
        end = step["end"]
        if not alive.any() or np.count_nonzero(forced) > self.s:
            return
        if end == "closed":
            matrix = self._split(int(step["split"]), alive, forced)[0]
            require(below(matrix, self.t), "the bound of a node is too large")
        elif end == "leaf":
            full = np.count_nonzero(forced) == self.s
            require(full or not self.padded, "a leaf that features outside may join")
            self._check_leaf(alive, forced)
        elif end == "branch":
            self.pending[position] = {"in": None, "out": None}
        elif end == "shrink":
            full = bool((alive == forced).all()) and self.nonnegative and not self.price.any()
            full = full and not self.padded
            block = self.a[np.ix_(alive, alive)]
            require(full and _no_positive_eigenvector(block, self.t), "a support may be full")
            self.pending[position] = {"shrink": set(np.flatnonzero(alive).tolist())}
        elif end == "same":
            require(int(step["node"]) < position, "a later node is referred to")
            other_alive, other_forced = self.entered[int(step["node"])]
            same = (other_alive == alive).all() and (other_forced == forced).all()
            require(bool(same), "another node is not the same")
        else:
            raise Unproved("a node is left open")

    # --- what is claimed about one node ---

    def _check_leaf(self, alive: np.ndarray, forced: np.ndarray) -> None:
        """Every support one by one; without prices the largest ones are enough."""
        base, free = np.flatnonzero(forced), np.flatnonzero(alive & ~forced)
        room = min(self.s - base.size, free.size)
        sizes = [room] if not self.price.any() else list(range(room + 1))
        require(sum(comb(free.size, q) for q in sizes) <= MOST_SUPPORTS, "too large a leaf")
        for q in sizes:
            for chosen in combinations(free.tolist(), q):
                support = np.append(base, np.array(chosen, dtype=np.intp))
                if support.size:
                    block = self.a[np.ix_(support, support)]
                    limit = self.t + float(self.price[support].sum())
                    require(below(block, limit), "a support of a leaf has a larger value")

    def _split(
        self, position: int, alive: np.ndarray, forced: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """M on the alive features, W_ij = V_ij - price_j, and the two levels of every row."""
        step = self.log[position]
        require(step["step"] == "split", "not a certificate")
        index = np.flatnonzero(alive)
        block = self.a[np.ix_(index, index)]
        u, r = certificate(step, block, index, self.nonnegative)
        f = forced[index]
        both = np.logical_and.outer(f, f)
        u = np.where(both, np.minimum(u, 0.0) if self.nonnegative else 0.0, u)
        v = pair_charges(u, r, self.nonnegative)
        w = v - self.price[index]
        d, level, next_level = largest_sums(w, v, f, self.price[index], self.s, self.pad[index])
        matrix = block - u
        matrix[np.diag_indices(index.size)] = np.diagonal(block) + d
        return matrix, w, level, next_level

    def _check_fixing(
        self,
        position: int,
        alive: np.ndarray,
        forced: np.ndarray,
        out: np.ndarray,
        into: np.ndarray,
    ) -> None:
        """Every feature that is put out (in) can be in no (is in every) support above t."""
        if out.size + into.size == 0:
            return
        candidates = np.concatenate([out, into])
        require(
            bool((alive[candidates] & ~forced[candidates]).all()), "a fixed feature is not free"
        )
        matrix, w, level, next_level = self._split(position, alive, forced)
        factor, low = _majorant(matrix, self.t)
        index, f = np.flatnonzero(alive), forced[alive]
        # a row that can choose no free feature has nothing to lose
        rows = self.s - np.count_nonzero(f) - np.where(f, 0, 1) > 0
        for j in np.searchsorted(index, out):
            drop = np.where(rows, level - w[:, j] - 8 * EPS * (level + np.abs(w[:, j])), 0.0)
            drop[j] = 0.0
            require(_small_test(factor, self.t - low, drop), "a feature was put out wrongly")
        for j in np.searchsorted(index, into):
            drop = np.where(
                rows, w[:, j] - next_level - 8 * EPS * (next_level + np.abs(w[:, j])), 0.0
            )
            rest = np.arange(index.size) != j
            require(_small_test(factor[rest], self.t - low, drop[rest]), "wrongly put in")


def _majorant(matrix: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """B and l < t with matrix <= l I + BB', proved."""
    n = matrix.shape[0]
    require(bool(np.isfinite(matrix).all()), "a matrix that is not finite")
    w, q = np.linalg.eigh(matrix)
    scale = float(np.abs(w).max())
    rank = min(n - 1, max(48, int(np.count_nonzero(w > t)) + 8))
    next_value = float(w[n - rank - 1]) if rank > 0 else float(w[0])
    low = next_value + 1e-10 * scale
    factor = q[:, n - rank :] * np.sqrt(np.maximum(w[n - rank :] - next_value, 0.0))
    slack = 4 * (rank + 2) * EPS * float((factor**2).sum())
    proved = low < t and below(matrix - factor @ factor.T, low - slack)
    require(proved, "no majorant below t")
    return factor, low


def _small_test(factor: np.ndarray, room: float, drop: np.ndarray) -> bool:
    """I - B' Diag(1 / (room + D)) B is positive semidefinite."""
    n, rank = factor.shape
    scaled = factor / np.sqrt(room + np.maximum(drop, 0.0))[:, None]
    gram = scaled.T @ scaled
    trace = float(np.trace(gram))
    margin = (2 * n + 32) * EPS * trace + 4 * (rank + 2) * EPS * (rank + trace)
    return factorises((1.0 - margin) * np.eye(rank) - gram)


def _no_positive_eigenvector(block: np.ndarray, t: float) -> bool:
    """No x > 0 is an eigenvector with eigenvalue above t (Davis and Kahan's angle bound)."""
    n = block.shape[0]
    w, q = np.linalg.eigh(block)
    size = float(np.abs(w).max())
    above = int(np.count_nonzero(w > t))
    if above == 0:
        return below(block, t)
    if above == n:
        return False
    next_value = float(w[n - above - 1])
    low = next_value + 1e-10 * size
    values, vectors = w[n - above :], q[:, n - above :]
    rest = block - (vectors * (values - next_value)) @ vectors.T
    if low > t or not below(rest, low - 8 * n * EPS * size):
        return False
    residual = np.linalg.norm(block @ vectors - vectors * values, axis=0) + 8 * n * EPS * size
    for g in range(above):
        away = np.abs(np.delete(values, g) - values[g]) - np.delete(residual, g) - residual[g]
        gap = min(float(away.min(initial=np.inf)), float(values[g]) - low)
        angle = 2 * float(residual[g]) / gap + 8 * n * EPS if gap > 0 else np.inf
        if not (vectors[:, g].max() > angle and vectors[:, g].min() < -angle):
            return False
    return True


FAMILIES = (Family("tree", Tree, recheck, raw=True),)
