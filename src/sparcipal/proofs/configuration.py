"""The configuration bound: prices of the features, and the best support at these prices.

For any prices beta >= 0 and components with disjoint supports S_j of at most s_j features,

    sum_j value(S_j) <= sum beta + sum_j max_S (value(S) - beta(S)),

because every feature is used at most once. The best prices solve the dual of a linear program over
all supports, the configuration LP; it is found by column generation: supports come from a local
search at the current prices and from the branch and bound for one component, which also proves the
maximum. Only what it proved enters the bound; the linear program is a guide. What gap the linear
program leaves is closed by packing the supports that can still matter, see packing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ..covariance import EPS, Covariance
from ..monitor import Monitor
from ..parallel import one_blas_thread
from ..refine import nonnegative_leading
from ..result import Bound
from ..search.exchange import removals
from .exact import Proof, prove
from .kyfan.certificate import Split, split_matrix
from .packing import Packed, best_packing

NAME = "configuration"
MOST_FEATURES = 400  # a branch and bound on more takes too long to be repeated
ROUNDS = 40
SAFETY = 4.0
PRICING_WORK = 1e10  # units of work of one branch and bound, see exact.py
STARTS = 24  # supports from which the local search for columns starts


@dataclass(frozen=True)
class Priced:
    """A bound by prices, and supports that explain more than the answer known, if it met any."""

    bound: Bound
    supports: tuple[np.ndarray, ...] = ()


def configuration_bound(
    cov: Covariance,
    cardinalities: Sequence[int],
    *,
    nonnegative: bool = False,
    supports: Sequence[np.ndarray],
    value: float,
    start: Bound,
    tol: float = 1e-6,
    monitor: Monitor | None = None,
) -> Priced | None:
    """A bound by prices, started from a Ky Fan split; None when there are too many features."""
    if cov.n_features > MOST_FEATURES:
        return None
    search = _Prices(cov, tuple(cardinalities), nonnegative, value, tol, monitor or Monitor())
    with one_blas_thread:
        return search.run([np.asarray(support) for support in supports], start)


def prices_of(a: np.ndarray, bound: Bound, s: int, k: int, nonnegative: bool) -> np.ndarray:
    """A Ky Fan split turned into prices without loss: beta + diag Z, Z = (M - nu I)_+."""
    data = bound.data
    split = Split(data["features"], data["u"], data["r"], data["price"], data["pad"])
    core = np.asarray(split.features)
    M = split_matrix(a[np.ix_(core, core)], split, s, nonnegative).matrix
    w, q = np.linalg.eigh(M)
    nu = w[max(w.size - k, 0)]
    price = np.zeros(a.shape[0])
    price[core] = split.price + np.square(q) @ np.maximum(w - nu, 0.0)
    return price


def _settled(proofs: list[Proof]) -> bool:
    return all(proof.status == "optimal" for proof in proofs)


class _Quiet(Monitor):
    """Stops with the outer run, but keeps the figures of one pricing to itself."""

    def __init__(self, outer: Monitor) -> None:
        super().__init__()
        self.outer = outer

    @property
    def stopped(self) -> str | None:
        return self.outer.stopped


class _Prices:
    def __init__(
        self,
        cov: Covariance,
        cardinalities: tuple[int, ...],
        nonnegative: bool,
        value: float,
        tol: float,
        monitor: Monitor,
    ) -> None:
        self.cov, self.sizes, self.nonnegative = cov, cardinalities, nonnegative
        a = cov.dense()
        self.a = np.ascontiguousarray(0.5 * (a + a.T))
        self.p = self.a.shape[0]
        self.kinds = sorted(set(cardinalities))
        self.counts = np.array([cardinalities.count(s) for s in self.kinds])
        self.value, self.tol = value, tol
        self.monitor = monitor
        self.columns: dict[tuple[int, ...], float] = {}

    def run(self, supports: list[np.ndarray], start: Bound) -> Priced | None:
        for support in supports:
            self._column(support)
        center = prices_of(self.a, start, max(self.sizes), len(self.sizes), self.nonnegative)
        proofs = self._priced(center)
        best = self._total(center, proofs)
        if best >= start.value and not _settled(proofs):
            return None  # one pricing is too hard already; many more would be needed
        chosen = center
        for _ in range(ROUNDS):
            if best <= self.value * (1.0 + self.tol) or self.monitor.stopped:
                break
            vertex = self._converged(center)
            new = 0
            # First between the best prices known and the vertex: there the pricing is easier.
            for share in (0.5, 1.0):
                price = (1.0 - share) * center + share * vertex
                proofs = self._priced(price)
                total = self._total(price, proofs)
                if total < best:
                    best, chosen = total, price
                new += sum(self._column(proof.support) for proof in proofs)
                if new or not _settled(proofs):
                    break
            center = chosen
            self.monitor.update("prove", bound=best, message=f"{len(self.columns)} supports priced")
            if not new or not _settled(proofs):
                break
        return self._bound(chosen)

    def _packed(self, price: np.ndarray, proof: Proof) -> tuple[dict[str, Any], Packed] | None:
        """Where prices alone leave a gap: the certificate that no packing does better.

        All packings above the target are looked at: one that is found there is the optimum.
        """
        target = self.value * (1.0 + 0.5 * self.tol)
        found = best_packing(
            self.a, self.kinds[0], len(self.sizes), price, proof.bound, target, self.monitor
        )
        if found is None:
            return None
        data = {"target": target, "u": found.split.origin["u"], "r": found.split.origin["r"]}
        return data, found

    # columns --------------------------------------------------------------------------------

    def _column(self, support: np.ndarray) -> bool:
        """Remember a support; whether it is new."""
        key = tuple(int(i) for i in np.sort(support))
        if key in self.columns:
            return False
        self.columns[key] = self._support_value(np.array(key))
        return True

    def _support_value(self, support: np.ndarray) -> float:
        block = self.a[np.ix_(support, support)]
        if self.nonnegative:
            x = nonnegative_leading(block)
            return float(x @ block @ x)
        return float(np.linalg.eigvalsh(block)[-1])

    def _converged(self, center: np.ndarray) -> np.ndarray:
        """Prices of the linear program once the local search finds no violated support."""
        for _ in range(60):
            vertex, level = self._linear_program()
            before = len(self.columns)
            for price in (vertex, 0.5 * (vertex + center)):
                for s, least in zip(self.kinds, level):
                    self._search_columns(price, s, vertex, float(least))
            if len(self.columns) == before:
                break
        return vertex

    def _linear_program(self) -> tuple[np.ndarray, np.ndarray]:
        """min sum beta + sum_t count_t level_t, level_t + beta(S) >= value(S) for |S| <= s_t."""
        rows: list[int] = []
        cols: list[int] = []
        kinds: list[int] = []
        values: list[float] = []
        for key, value in self.columns.items():
            for t, s in enumerate(self.kinds):
                if len(key) <= s:
                    rows += [len(values)] * len(key)
                    cols += key
                    kinds.append(t)
                    values.append(value)
        m, n = len(values), self.p + len(self.kinds)
        rows += range(m)
        cols += [self.p + t for t in kinds]
        matrix = sp.csr_array((np.ones(len(rows)), (rows, cols)), shape=(m, n))
        cost = np.concatenate([np.ones(self.p), self.counts])
        options: dict[str, Any] = {"A_ub": -matrix, "b_ub": -np.array(values), "method": "highs"}
        answer = linprog(cost, **options)
        if answer.x is None:
            return np.zeros(self.p), np.zeros(len(self.kinds))
        return np.maximum(answer.x[: self.p], 0.0), answer.x[self.p :]

    def _search_columns(self, price: np.ndarray, s: int, vertex: np.ndarray, level: float) -> None:
        """Local search at these prices from the most promising supports."""
        keys = [key for key in self.columns if len(key) == s]
        keys.sort(key=lambda key: price[list(key)].sum() - self.columns[key])
        for key in keys[:STARTS]:
            found = self._climb(np.array(key), price)
            value = self._support_value(found)
            if value - vertex[found].sum() > level + 1e-9 * self.value:
                self._column(found)

    def _climb(self, support: np.ndarray, price: np.ndarray) -> np.ndarray:
        """Exchange one feature while value minus price grows."""
        from ..kernels.exchange import predict

        now = self._support_value(support) - price[support].sum()
        for _ in range(40):
            block = self.a[np.ix_(support, support)]
            lead = np.linalg.eigh(block)[1][:, -1]
            if self.nonnegative:
                lead = nonnegative_leading(block)
            vectors, values = removals(block, lead, self.nonnegative)
            gain = np.empty((support.size, self.p))
            predict(self.a, support, vectors, values, self.nonnegative, gain)
            gain += price[support][:, None] - price[None, :]
            gain[:, support] = -np.inf
            order = np.argpartition(-gain.ravel(), min(6, gain.size - 1))[:6]
            tried = [(now, support)]
            for t, b in zip(*np.unravel_index(order, gain.shape)):
                if gain[t, b] == -np.inf:  # a member already
                    continue
                other = support.copy()
                other[t] = b
                tried.append((self._support_value(other) - price[other].sum(), other))
            best, other = max(tried, key=lambda pair: pair[0])
            if best <= now + 1e-10 * self.value:
                break
            now, support = best, other
        return support

    # pricing --------------------------------------------------------------------------------

    def _priced(self, price: np.ndarray, *, keep_log: bool = False) -> list[Proof]:
        """The best support at these prices for every cardinality, proved."""
        proofs = []
        for s in self.kinds:
            keys = [key for key in self.columns if len(key) <= s]
            known = max(keys, key=lambda key: self.columns[key] - price[list(key)].sum())
            support = np.array(known)
            proofs.append(
                prove(
                    self.a,
                    s,
                    nonnegative=self.nonnegative,
                    prices=price,
                    incumbent=(support, self.columns[known] - float(price[support].sum())),
                    tol=self._pricing_tolerance(),
                    monitor=_Quiet(self.monitor),
                    effort=PRICING_WORK,
                    keep_log=keep_log,
                )
            )
        return proofs

    def _pricing_tolerance(self) -> float:
        """A tenth of what the bound may lose in all, for one component."""
        size = max(self.value / len(self.sizes), float(np.diagonal(self.a).max()))
        return max(0.1 * self.tol * self.value / (len(self.sizes) * size), 1e-9)

    def _total(self, price: np.ndarray, proofs: list[Proof]) -> float:
        parts = float(self.counts @ np.array([max(proof.bound, 0.0) for proof in proofs]))
        return (float(price.sum()) + parts) * (1 + (self.p + 8) * EPS)

    def _bound(self, price: np.ndarray) -> Priced:
        price = price.astype(np.float32).astype(np.float64)
        proofs = self._priced(price, keep_log=True)
        margin = SAFETY * sum(self.cov.rounding(s) for s in self.sizes)
        parts: list[dict[str, Any]] = [
            {"s": s, "log": proof.log} for s, proof in zip(self.kinds, proofs)
        ]
        data: dict[str, Any] = {"price": price.astype(np.float32), "parts": parts}
        total = self._total(price, proofs)
        gap = total > self.value * (1.0 + self.tol)
        if gap and len(self.kinds) == 1 and not self.nonnegative and not self.monitor.stopped:
            packing = self._packed(price, proofs[0])
            if packing is not None:
                data["packing"], found = packing
                if found.value <= data["packing"]["target"]:
                    total = data["packing"]["target"] * (1 + 8 * EPS)
                    return Priced(Bound(NAME, total + margin, data))
                total = found.value * (1 + 8 * EPS)
                return Priced(Bound(NAME, total + margin, data), tuple(found.supports))
        return Priced(Bound(NAME, total + margin, data))
