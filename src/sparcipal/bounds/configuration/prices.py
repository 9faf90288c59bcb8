"""Bound "configuration"; statement and proof: docs/methods/configuration.rst.

Central prices lie near those of a Ky Fan split and keep the known supports below a level.

For prices beta >= 0 of the features, components of kinds t (count_t of them with at most s_t
features) explain at most

    paid(beta) + sum_t count_t level_t,    level_t >= value(S) - beta(S) for all S, |S| <= s_t,

where paid is the sum of beta over as many features as may be used. The best prices solve the dual
of a linear program over all supports, the configuration LP. Its vertices are bad prices: many
other supports tie with the best ones there, and no bound tells them apart. So, as in the level
method of Lemarechal, Nemirovskii and Nesterov (1995), prices are asked to reach a level above the
best value known on the supports met so far, and among these prices those closest to the prices of
the Ky Fan split are taken. Local search then looks for supports that violate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.largest import magnitudes
from ...problem.components import replacements
from ...problem.nonnegative import nonnegative_leading
from ..enumeration import Kind
from ..kyfan.certificate import KyFanSplit, kyfan_matrix
from ..pairsplit import Split
from ..pairsplit.certificate import R_LIMIT

STARTS = 14  # supports from which the local search at given prices starts
CANDIDATES = 6  # swaps evaluated in one step of the local search
STEPS = 40
NODES = 200  # of the branch and bound that packs the known supports
SPREAD = 2.0  # weight of the mean change of prices beside the largest


def converted(
    a: np.ndarray, split: KyFanSplit, s: int, k: int, nonnegative: bool
) -> tuple[Split, np.ndarray, float]:
    """Turn a Ky Fan split into an equally good pair split: (U', R'), beta', lambda_max(M').

    With nu the k-th eigenvalue of M and Z = (M - nu I)_+, U' = U + Z off the diagonal,
    V'_ab = V_ab + Z_bb and beta' = beta + diag Z give M' = M - Z: k nu + sum beta' is the Ky Fan
    bound. V' V'^T >= U'^2 by Cauchy and Schwarz; only the ratio of V'_ab and V'_ba is kept.
    """
    n = a.shape[0]
    u, r = split.full()
    w, q = np.linalg.eigh(kyfan_matrix(a, split, s, nonnegative).matrix)
    nu = float(w[max(n - k, 0)])
    root = q * np.sqrt(np.maximum(w - nu, 0.0))
    z = root @ root.T
    lift = np.diagonal(z).copy()
    charge = magnitudes(u, nonnegative) * np.exp(r) + lift[None, :]
    logs = np.log(np.maximum(charge, 1e-300))
    upper = np.triu_indices(n, 1)
    ratio = np.clip(0.5 * (logs - logs.T), -R_LIMIT, R_LIMIT)
    pair = Split.rounded(np.arange(n), upper, (u + z)[upper], ratio[upper])
    return pair, split.price.astype(np.float64) + lift, nu


def kinds_on(
    core: np.ndarray, sizes: Sequence[int], include: Sequence[Sequence[int]]
) -> list[Kind]:
    """Return the kind of each component, features by their places in a core that has them all."""
    own = [np.searchsorted(core, list(anchors)).tolist() for anchors in include]
    own = own or [[] for _ in sizes]
    every = {place for places in own for place in places}
    return [
        Kind(s, tuple(sorted(places)), tuple(sorted(every - set(places))))
        for s, places in zip(sizes, own)
    ]


class Pool:
    """The supports met so far, with their values."""

    def __init__(
        self,
        a: np.ndarray,
        wanted: Sequence[Kind],
        nonnegative: bool,
        value: float,
        *,
        full: bool = False,
    ) -> None:
        """`wanted` has the kind of each component; `full` says that only supports with as many
        features as their kind allows count."""
        self.a, self.nonnegative, self.value, self.full = a, nonnegative, value, full
        self.wanted = tuple(wanted)
        self.kinds = sorted(set(wanted))
        self.counts = np.array([self.wanted.count(kind) for kind in self.kinds])
        self.columns: dict[tuple[int, ...], float] = {}

    def add(self, support: np.ndarray) -> bool:
        """Store a support and return whether it is new."""
        key = tuple(int(i) for i in np.sort(support))
        if key in self.columns:
            return False
        self.columns[key] = self.value_of(np.array(key))
        return True

    def serves(self, kind: Kind, key: tuple[int, ...]) -> bool:
        """Return whether a support counts for components of a kind."""
        return kind.admits(key) and (not self.full or len(key) == kind.s)

    def value_of(self, support: np.ndarray) -> float:
        block = self.a[np.ix_(support, support)]
        if self.nonnegative:
            x = nonnegative_leading(block)
            return float(x @ block @ x)
        return float(np.linalg.eigvalsh(block)[-1])

    def worth(self, key: tuple[int, ...], price: np.ndarray) -> float:
        return self.columns[key] - float(price[list(key)].sum())

    def best(self, price: np.ndarray, kind: Kind) -> tuple[np.ndarray, float]:
        """Return the support of this kind that is worth most, and its worth."""
        keys = [key for key in self.columns if self.serves(kind, key)]
        found = max(keys, key=lambda key: self.worth(key, price))
        return np.array(found), self.worth(found, price)

    def total(self, price: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the bound that would hold if no better support exists, and its levels."""
        levels = np.array([kind.least(self.best(price, kind)[1]) for kind in self.kinds])
        return float(price.sum()) + float(self.counts @ levels), levels

    # local search ---------------------------------------------------------------------------

    def search(self, price: np.ndarray, mixtures: np.ndarray | None = None) -> bool:
        """Climb from the supports that are worth most; return whether a new one was found.

        `mixtures` (m, n) are further vectors from which to start.
        """
        new = False
        for kind in self.kinds:
            keys = [key for key in self.columns if len(key) == kind.s and kind.admits(key)]
            keys.sort(key=lambda key: -self.worth(key, price))
            starts = [np.array(key) for key in keys[:STARTS]]
            if mixtures is not None:
                starts += [self._cut(x, price, kind) for x in mixtures]
            for start in {start.tobytes(): start for start in starts}.values():
                new |= self.add(self._climb(start, price, kind))
        return new

    def _cut(self, x: np.ndarray, price: np.ndarray, kind: Kind) -> np.ndarray:
        """Take truncated power steps that rank features by their share minus their price."""
        s = kind.s
        support = np.arange(s)
        for _ in range(4):
            y = self.a @ x
            value = max(float(x @ y), 1e-300)
            score = (np.maximum(y, 0.0) if self.nonnegative else y) ** 2 / value - price
            score[list(kind.anchors)] = np.inf
            score[list(kind.banned)] = -np.inf
            support = np.sort(np.argpartition(-score, s - 1)[:s])
            block = self.a[np.ix_(support, support)]
            x = np.zeros(price.size)
            x[support] = (
                nonnegative_leading(block) if self.nonnegative else np.linalg.eigh(block)[1][:, -1]
            )
        return support

    def _climb(self, support: np.ndarray, price: np.ndarray, kind: Kind) -> np.ndarray:
        """Exchange one feature at a time while value minus price grows."""
        now = self.value_of(support) - price[support].sum()
        for _ in range(STEPS):
            block = self.a[np.ix_(support, support)]
            lead = np.linalg.eigh(block)[1][:, -1]
            if self.nonnegative:
                lead = nonnegative_leading(block)
            gain = replacements(self.a, support, lead, self.nonnegative)
            gain += price[support][:, None] - price[None, :]
            gain[:, support] = -np.inf
            gain[:, list(kind.banned)] = -np.inf
            gain[np.isin(support, kind.anchors)] = -np.inf
            count = min(CANDIDATES, gain.size)
            order = np.argpartition(-gain.ravel(), count - 1)[:count]
            tried = [(now, support)]
            for t, b in zip(*np.unravel_index(order, gain.shape)):
                if gain[t, b] == -np.inf:  # b is already in the support
                    continue
                other = support.copy()
                other[t] = b
                tried.append((self.value_of(other) - price[other].sum(), other))
            best, other = max(tried, key=lambda pair: pair[0])
            if best <= now + 1e-10 * self.value:
                break
            now, support = best, other
        return support

    # linear programs ------------------------------------------------------------------------

    def _program(self) -> Program:
        return Program.of(
            self.a.shape[0],
            self.counts,
            [
                (t, key, value)
                for key, value in self.columns.items()
                for t, kind in enumerate(self.kinds)
                if self.serves(kind, key)
            ],
        )

    def least_total(self) -> float:
        """Solve the configuration LP over the known supports; no prices give less on them."""
        return self._program().least_total()

    def best_disjoint(self) -> tuple[float, list[np.ndarray]] | None:
        """Return the known disjoint supports of the largest value together, in the order of the
        components; None where the known supports do not suffice or the solver gives up."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        program = self._program()
        rows, values = program.rows, program.values
        most = np.concatenate([np.ones(self.a.shape[0]), self.counts])
        least = np.concatenate([np.zeros(self.a.shape[0]), self.counts])
        answer = milp(
            -values,
            constraints=LinearConstraint(rows.T, least, most),
            integrality=np.ones(values.size),
            bounds=Bounds(0, 1),
            options={"node_limit": NODES},
        )
        if answer.x is None:
            return None
        n, given = self.a.shape[0], np.flatnonzero(answer.x > 0.5).tolist()
        chosen = [np.sort(rows[[i]].indices) for i in given]  # features, then n + the kind
        if [int((one >= n).sum()) for one in chosen] != [1] * int(self.counts.sum()):
            return None
        chosen.sort(key=lambda one: int(one[-1]))
        order = sorted(range(len(self.wanted)), key=lambda j: self.wanted[j])
        places = dict(zip(order, chosen))
        supports = [places[j][:-1] for j in range(len(order))]
        used = np.concatenate(supports)
        if np.unique(used).size != used.size:
            return None
        return float(sum(self.value_of(support) for support in supports)), supports

    def central(self, center: np.ndarray, level: float) -> np.ndarray | None:
        """Return the prices closest to `center` that keep the known supports below `level`."""
        width = center + 0.1 * self.value / float(sum(kind.s for kind in self.wanted))
        return self._program().closest(center, width, level)


@dataclass(frozen=True)
class Program:
    """The linear program of prices beta and levels, level_t + beta(S) >= value(S) for some S.

    A level belongs to a kind t of supports; count_t components have it.
    """

    rows: sp.csr_array  # (supports, n + kinds), ones at the features of S and at n + t
    values: np.ndarray  # (supports,)
    counts: np.ndarray  # (kinds,)
    least_level: float | None = 0.0  # None where levels may be negative

    @staticmethod
    def of(
        n: int,
        counts: np.ndarray,
        supports: Sequence[tuple[int, tuple[int, ...], float]],
        least_level: float | None = 0.0,
    ) -> Program:
        """Make the program of n prices from the kind, the features and the value of supports."""
        places = [i for i, (_, key, _) in enumerate(supports) for _ in range(len(key) + 1)]
        columns = [column for t, key, _ in supports for column in (*key, n + t)]
        rows = sp.csr_array(
            (np.ones(len(places)), (places, columns)), shape=(len(supports), n + len(counts))
        )
        return Program(rows, np.array([value for _, _, value in supports]), counts, least_level)

    @property
    def _total(self) -> np.ndarray:
        n = self.rows.shape[1] - self.counts.size
        return np.concatenate([np.ones(n), self.counts])

    def least_total(self) -> float:
        """Return the least total of prices and levels; infinity if the solver gives up."""
        answer = self._solved(self._total, -self.rows, -self.values)
        return float(answer.fun) if answer.x is not None else np.inf

    def closest(self, center: np.ndarray, width: np.ndarray, level: float) -> np.ndarray | None:
        """Return the prices closest to `center` whose total is at most `level`, or None.

        Distance is the largest change, in units of `width`, plus a part of the mean.
        """
        n, kinds = center.size, self.counts.size
        one, zero = sp.identity(n, format="csr"), sp.csr_array((n, kinds))
        empty = sp.csr_array((n, 1))
        above = sp.vstack(
            [
                sp.hstack([-self.rows, sp.csr_array((self.values.size, n + 1))]),
                sp.hstack([one, zero, -one, empty]),
                sp.hstack([-one, zero, -one, empty]),
                sp.hstack([sp.csr_array((n, n + kinds)), one, sp.csr_array(-width[:, None])]),
                sp.csr_array(np.concatenate([self._total, np.zeros(n + 1)])[None, :]),
            ],
            format="csr",
        )
        limits = np.concatenate([-self.values, center, -center, np.zeros(n), [level]])
        cost = np.concatenate([np.zeros(n + kinds), SPREAD / (n * width), [1.0]])
        answer = self._solved(cost, above, limits)
        return np.maximum(answer.x[:n], 0.0) if answer.x is not None else None

    def _solved(self, cost: np.ndarray, above: sp.csr_array, limits: np.ndarray) -> Any:
        from scipy.optimize import linprog  # imported here: few proofs need it, and it takes 20 MB

        kinds = self.counts.size
        n = self.rows.shape[1] - kinds
        bounds = [(0.0, None)] * n + [(self.least_level, None)] * kinds
        bounds += [(0.0, None)] * (cost.size - n - kinds)
        return linprog(cost, A_ub=above, b_ub=limits, bounds=bounds, method="highs")
