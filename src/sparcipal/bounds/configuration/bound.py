"""Bound "configuration"; statement and proof: docs/methods/configuration.rst.

The configuration bound puts prices on the features and bounds the best support at these prices.

For any prices beta >= 0 and components with disjoint supports S_j of at most s_j features,

    sum_j value(S_j) <= sum beta + sum_j max_S (value(S) - beta(S)),

because every feature is used at most once. The best prices solve the dual of a linear program over
all supports, the configuration LP. Good ones come from a Ky Fan split without loss, and are moved
towards a lower level as little as possible, see prices.py. At fixed prices the branch and bound for
one component proves the maximum; where it meets a support that is worth more than the level, that
support is added to the pool and the prices are moved again. Only what was proved enters the bound.

Features outside the core of the split cost nothing. Rows of the core pay pad_a for each of them in
every node of the branch and bound, and what is left is a number for each feature outside,

    m_j = A_jj + the s-1 largest of {A_ja^2 / pad_a - beta_a} and {|A_jl|},

as in kyfan/certificate.py: value(S) - beta(S) is at most the largest of the bound on the core and
these. What gap the linear program leaves is closed by packing the supports that can still matter,
see packing.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.eigen import largest_eigenpairs
from ...numerics.margins import SAFETY, power_of_two
from ...numerics.threads import one_blas_thread
from ...problem.monitor import Monitor, Quiet
from ...problem.result import Bound
from ..enumeration import Kind
from ..kyfan.certificate import KyFanMatrix, KyFanSplit, kyfan_matrix
from ..kyfan.question import JointAnswer, JointQuestion
from ..outside import Outside
from ..pairsplit import Split
from ..tree.log import Proof
from ..tree.question import TreeQuestion
from ..tree.search import prove
from .packing import PackingQuestion, best_packing
from .prices import Pool, converted, kinds_on

NAME = "configuration"
MOST_CORE = 700  # features of a core; a branch and bound on more takes too long
MOST_PACKED = 400  # features among which supports are enumerated
ROUNDS = 60  # how often prices may be moved
MOVES = 30  # of the prices, at most, until the local search finds no new support
# Where components use nearly all features, many supports bind before prices settle: as many moves,
# each of so many units of work for a feature.
MOVES_FULL, MOVE = 400, 2.5e5
MIXTURES = 60  # random starts of the first local search
LEVELS = (0.0, 0.5)  # targets, as fractions of the gap: the optimum, then half way to it
# Of the tolerance, what trees may leave in all where prices at a gap of 0.6 of it leave nothing.
ROOM = 0.1
IMPROVED = 1e-9  # relative gain from which a packing counts as better
SOONER = 0.25  # factor on the target after a success
PARTS = (0.6, 0.8)  # of the work that is left, for each of these targets; packing has the rest
DEAR = 4.0  # the price of an anchor for other components, in units of the value
REWARD = 2.0  # more than one: how much more a feature is rewarded than it costs
PADS = (0.3, 0.5, 0.7, 0.85, 1.0, 1.3, 1.7)  # factors on what rows of the Ky Fan split pay


@dataclass(frozen=True)
class _Attempt:
    """Prices with one proof at these prices for each distinct cardinality."""

    price: np.ndarray  # (n,) on the core
    proofs: list[Proof]
    total: float


@dataclass(frozen=True)
class Priced:
    """What a longer bound begins with: the supports met on a core, and certificates there."""

    core: np.ndarray
    columns: dict[tuple[int, ...], float]
    starts: dict[Kind, Split]


def configuration_bound(
    question: JointQuestion,
    start: Bound,
    *,
    again: Priced | None = None,
    work: float = 1e11,
    monitor: Monitor | None = None,
    n_jobs: int = 1,
) -> JointAnswer | None:
    """Return a bound by prices, started from a Ky Fan split; None if its core is too large.

    `again` comes from the answer to a shorter bound of the same question. `work` is about
    nanoseconds of one core for all branch and bound together.
    """
    if len(start.data["features"]) > MOST_CORE:
        return None
    search = _Prices(question, monitor or Monitor(), n_jobs)
    with one_blas_thread:
        supports = [np.asarray(support) for support in question.supports]
        return search.run(supports, start, again, work)


class _Prices:
    def __init__(self, question: JointQuestion, monitor: Monitor, n_jobs: int) -> None:
        self.cov, self.nonnegative = question.cov, question.nonnegative
        self.sizes, self.k = question.cardinalities, len(question.cardinalities)
        self.include = question.include
        self.value, self.tol = question.value, question.tol
        self.monitor = monitor
        self.n_jobs = n_jobs
        self.rng = np.random.default_rng(0)
        self.left = 0.0
        self.better: tuple[np.ndarray, ...] = ()  # supports that explain more than those given
        self.mixed = False  # whether mixtures of known supports reach more than the level

    def run(
        self, supports: list[np.ndarray], start: Bound, again: Priced | None, work: float
    ) -> JointAnswer:
        self._prepare(supports, start, again)
        self.left = work
        best: _Attempt | None = None
        lowest, settled = start.value, False
        for share, part in zip(LEVELS, PARTS):
            last = (1.0 - part) * self.left
            # once the lowest target is proved, only packing can improve the bound
            while self.left > last and not settled and not self._closed(lowest):
                # a level slightly above the optimum leaves room for the prices
                aim = max(share * (lowest / self.value - 1.0), 0.6 * self.tol)
                attempt = self._attempt(aim, self.left - last)
                if attempt is None:
                    break
                # even prices that do not improve the bound may be good enough for packing
                if best is None or attempt.total < best.total:
                    best = attempt
                done = all(proof.status == "optimal" for proof in attempt.proofs)
                settled = done and aim <= 0.6 * self.tol and self.mixed
                if not done or attempt.total >= lowest:
                    lowest = min(lowest, attempt.total)
                    break
                lowest, share = attempt.total, SOONER * share
                self.monitor.update("prices", bound=lowest, message=self._text(attempt))
        bound, packed = (None, ()) if best is None else self._bound(best)
        better = packed or self.better
        if bound is not None and bound.value >= start.value:
            bound = None
        return JointAnswer(bound, better, Priced(self.core, self.pool.columns, self.starts))

    def _text(self, attempt: _Attempt) -> str:
        nodes = sum(proof.nodes for proof in attempt.proofs)
        return f"{len(self.pool.columns)} supports priced, {nodes} nodes"

    def _closed(self, total: float) -> bool:
        return bool(total <= self.value * (1.0 + self.tol) or self.monitor.stopped)

    def _prepare(self, supports: list[np.ndarray], start: Bound, again: Priced | None) -> None:
        """Set up the core, the prices of the Ky Fan split and the pool of first supports."""
        split = KyFanSplit.of(start.data)
        self.core = split.features
        a = self.cov.submatrix(self.core)
        self.a = np.ascontiguousarray(0.5 * (a + a.T))
        s = max(self.sizes)
        pair, self.center, _ = converted(self.a, split, s, self.k, self.nonnegative)
        self.evaluated = kyfan_matrix(self.a, split, s, self.nonnegative)
        self.leading = largest_eigenpairs(self.evaluated.matrix, 3 * self.k)[1]
        unit = power_of_two(float(np.abs(self.a).max()))
        wanted = kinds_on(self.core, self.sizes, self.include)
        self.starts: dict[Kind, Split] = dict.fromkeys(wanted, pair.scaled(1.0 / unit))
        unused = self.cov.n_features - sum(self.sizes)
        every = self.core.size == self.cov.n_features and float(np.diagonal(self.a).min()) >= 0.0
        self.full = every and 0 <= unused <= s
        self.pool = Pool(self.a, wanted, self.nonnegative, self.value, full=self.full)
        self.anchored = np.zeros(self.core.size)
        dear = DEAR * power_of_two(max(self.value, float(np.abs(self.a).max())))
        given = [
            np.union1d(np.searchsorted(self.core, support), kind.anchors).astype(int)
            for kind, support in zip(wanted, supports)
        ]
        if self.full:
            given = _filled(given, wanted, self.core.size)
        for kind, support in zip(wanted, given):
            self.pool.add(support)
            self.anchored[list(kind.anchors)] = dear
        if again is not None and np.array_equal(again.core, self.core):
            self.pool.columns.update(again.columns)
            self.starts.update(again.starts)
        self.pool.search(self.center, self._mixtures(MIXTURES))

    def _mixtures(self, count: int) -> np.ndarray:
        weights = self.rng.standard_normal((count, self.leading.shape[1]))
        return np.asarray(weights @ self.leading.T)

    # one target -----------------------------------------------------------------------------

    def _attempt(self, aim: float, work: float) -> _Attempt | None:
        """Find and prove prices at which the bound is about (1 + aim) times the value."""
        last = self.left - work
        for _ in range(ROUNDS):
            prices = self._prices(aim)
            if prices is None:
                return None
            price, level, levels = prices
            room = max(level - float(price.sum()) - float(self.pool.counts @ levels), 0.0) / self.k
            room = max(room, ROOM * self.tol * self.value / self.k)
            price, levels = self._rewarded(*self._dear(price, levels))
            proofs = self._priced(price, levels + room, room, self.left - last)
            if proofs is None:
                return None
            better = [
                proof.support for proof, t in zip(proofs, levels) if proof.value > t + 1.1 * room
            ]
            if not better or self.left <= last or self.monitor.stopped:
                return _Attempt(price, proofs, self._total(price, proofs))
            for support in better:
                self.pool.add(support)
        return None

    def _dear(self, price: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put the price of anchors on them, and return the levels at these prices.

        At this price no component takes the anchor of another one; its own has to pay, so that the
        total is the same.
        """
        dear = np.where(self.anchored > 0.0, self.anchored, price)
        paid = [float((dear - price)[list(kind.anchors)].sum()) for kind in self.pool.kinds]
        return dear, levels - np.array(paid)

    def _rewarded(self, price: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Reward every feature by more than it costs, where all components may be full.

        No support of fewer features is then worth more than one of all that are allowed.
        """
        if not self.full:
            return price, levels
        reward = power_of_two(REWARD * float(price.max()))
        sizes = np.array([kind.s for kind in self.pool.kinds])
        return price - reward, levels + reward * sizes

    def _paid(self, price: np.ndarray) -> float:
        """Return at least the prices of all features that components use together."""
        return float(np.sort(price)[-sum(self.sizes) :].sum() if self.full else price.sum())

    def _prices(self, aim: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Return prices near the centre, the total they aim at, and the level of each size."""
        level = self.value * (1.0 + aim)
        found = None
        for move in range(MOVES_FULL if self.full else MOVES):
            if self.full:
                self.left -= MOVE * self.core.size
                if self.left <= 0.0 and found is not None:
                    break
            least = self.pool.least_total()
            if least > level and self._improved():
                level = self.value * (1.0 + aim)
            if least > level:  # the linear program leaves a gap
                level = self.value + 1.1 * (least - self.value) + 0.1 * self.tol * self.value
            price = self.pool.central(self.center, level)
            if price is None:
                break
            price = price.astype(np.float32).astype(np.float64)
            new = self.pool.search(price, self._mixtures(4 if move else 16))
            total, levels = self.pool.total(price)
            found = price, max(level, total), levels
            if not new or total <= level + 0.02 * (level - self.value):
                break
        self.mixed = level > self.value * (1.0 + aim)
        return found

    def _improved(self) -> bool:
        """Pack the known supports; return whether they explain more than the best answer."""
        found = self.pool.best_disjoint()
        if found is None or found[0] <= self.value * (1.0 + IMPROVED):
            return False
        self.value, supports = found
        self.better = tuple(self.core[support] for support in supports)
        return True

    def _priced(
        self, price: np.ndarray, targets: np.ndarray, room: float, work: float
    ) -> list[Proof] | None:
        """Prove for each cardinality that no support is worth more than its target, or find one."""
        proofs = []
        for kind, target in zip(self.pool.kinds, targets.tolist()):
            pads = self._pads(price, kind.s, target)
            if pads is None:
                return None
            support, known = self.pool.best(price, kind)
            size = max(abs(known), float(np.abs(self.a).max()))
            question = TreeQuestion(
                nonnegative=self.nonnegative,
                prices=price,
                incumbent=(support, known),
                tol=max((target - known) / size, 1e-9),
                monitor=Quiet(self.monitor),
                effort=work,
                start=self.starts[kind],
                forced=np.array(kind.anchors, dtype=np.intp) if kind.anchors else None,
                pads=pads if pads.any() else None,
                enough=target + 0.1 * room,
                n_jobs=self.n_jobs,
            )
            proof = prove(self.a, kind.s, question)
            self.left -= proof.work
            if proof.again is not None:
                self.starts[kind] = proof.again
            proofs.append(proof)
            if proof.status == "enough":
                break
        return proofs

    def _pads(self, price: np.ndarray, s: int, target: float) -> np.ndarray | None:
        """Return pads for the rows of the core with which no m_j exceeds the target, or None."""
        if self.core.size == self.cov.n_features:
            return np.zeros(self.core.size)
        for factor in PADS:
            pads = (factor * self.evaluated.theta).astype(np.float32).astype(np.float64)
            charged = KyFanMatrix(self.evaluated.matrix, pads, price)
            outside = Outside(self.cov, self.core, charged, s, self.nonnegative)
            if outside.violators(target)[0].size == 0:
                return pads
        return None

    def _total(self, price: np.ndarray, proofs: list[Proof]) -> float:
        if len(proofs) < len(self.pool.kinds):
            return np.inf
        found = [kind.least(proof.bound) for kind, proof in zip(self.pool.kinds, proofs)]
        parts = float(self.pool.counts @ np.array(found))
        size = float(np.abs(price).sum()) + float(self.pool.counts @ np.abs(found))
        return self._paid(price) + parts + SAFETY * margins.priced(price.size) * size

    # the end --------------------------------------------------------------------------------

    def _bound(self, attempt: _Attempt) -> tuple[Bound, tuple[np.ndarray, ...]]:
        margin = SAFETY * sum(self.cov.rounding(s) for s in self.sizes)
        parts: list[dict[str, Any]] = [
            {"s": kind.s, "log": proof.log} for kind, proof in zip(self.pool.kinds, attempt.proofs)
        ]
        price = attempt.price
        data: dict[str, Any] = {"price": price, "parts": parts}
        if self.core.size < self.cov.n_features:
            data["features"] = self.core.astype(np.int32)
            return Bound(NAME, attempt.total + margin, data, margin), ()
        gap = attempt.total > self.value * (1.0 + self.tol)
        if gap and self._packable():
            packing = self._packed(price, attempt.proofs[0])
            if packing is not None:
                data["packing"], total, supports = packing
                return Bound(NAME, total + margin, data, margin), supports
        return Bound(NAME, attempt.total + margin, data, margin), ()

    def _packable(self) -> bool:
        alike = len(self.pool.kinds) == 1 and not self.nonnegative and not self.include
        return alike and self.core.size <= MOST_PACKED and not self.monitor.stopped

    def _packed(
        self, price: np.ndarray, proof: Proof
    ) -> tuple[dict[str, Any], float, tuple[np.ndarray, ...]] | None:
        """Return the certificate data, bound and supports of the best packing above the target.

        All packings above the target are enumerated, so the best one found is the optimum.
        """
        target = self.value * (1.0 + 0.5 * self.tol)
        kind = self.pool.kinds[0]
        s, start = kind.s, self.starts[kind].scaled(power_of_two(float(np.abs(self.a).max())))
        paid, work = self._paid(price), max(self.left, 0.0)
        question = PackingQuestion(self.a, s, self.k, price, paid, proof.bound, target, start, work)
        found = best_packing(question, self.monitor)
        if found is None:
            return None
        data = {"target": target, "u": found.split.origin["u"], "r": found.split.origin["r"]}
        if found.value <= target:
            return data, target * (1 + SAFETY * margins.claim()), ()
        # Eigenvalues of the supports are rounded, here and in the checker.
        size = float(np.abs(np.diagonal(self.a)).sum() + np.abs(price).sum())
        rounding = margins.packing_slack(price.size, s) * size
        total = found.value * (1 + SAFETY * margins.claim()) + SAFETY * self.k * rounding
        return data, total, tuple(found.supports)


def _filled(supports: list[np.ndarray], kinds: list[Kind], n: int) -> list[np.ndarray]:
    """Return the supports filled up with unused features, to the sizes that their kinds allow."""
    free = np.setdiff1d(np.arange(n), np.concatenate(supports)).tolist()
    filled = []
    for support, kind in zip(supports, kinds):
        count = max(kind.s - support.size, 0)
        more, free = free[:count], free[count:]
        filled.append(np.sort(np.array([*support.tolist(), *more])))
    return filled
