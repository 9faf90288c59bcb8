"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst.

Upper bounds for several components with disjoint supports, over all features.

`kyfan_bound` optimises a pair-split certificate with prices on a core of features, extends it to
all, moves the features that stand in the way into the core, and proves what is left by a Cholesky
factorisation. See certificate.py for the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY, top_sum
from ...numerics.threads import one_blas_thread
from ...problem.components import least_loss
from ...problem.monitor import Monitor
from ...problem.result import Bound
from ..outside import Outside
from .certificate import KyFanMatrix, KyFanSplit, kyfan_matrix, proved_sum
from .optimise import KyFanOptimiser, largest_core, step_work
from .question import JointQuestion, Sizes
from .starts import first_core, first_split, grown, guess

__all__ = ["kyfan_bound"]

NAME = "kyfan"
USUAL = 13.0  # nonzeros above which a short optimisation needs a larger pad
LONG = 100  # steps with which an optimisation converges with any pad
WORTH = 60  # steps that must be left for a larger core to be worth it
KEPT = 0.4  # part of the work that is kept back for a larger core
SLOW = 0.004  # gain of a round, relative to the gap, below which no more work is spent
NEAR = 0.8  # outside features above this fraction of the level join the core too


@dataclass(frozen=True)
class Effort:
    """The length of an optimisation, in counts rather than seconds."""

    core: int  # features of the first core
    temperatures: tuple[float, ...]
    steps: int  # L-BFGS steps at each temperature
    later: tuple[float, ...]  # temperatures after the core has grown, or if it need not grow
    later_steps: int
    rounds: int  # how often the core may grow
    pad: float  # what a row pays for an outside feature, in units of value / (k s)
    work: float = (
        np.inf
    )  # about nanoseconds of one core; no feature joins for which too few are left

    def most_work(self, n: int, k: int) -> float:
        """Return what all steps take on n features that are all in the core."""
        return len(self.temperatures) * self.steps * step_work(n, 4 * k)


EFFORTS = {
    # every feature is in the core: nothing has to join it
    "short": Effort(400, (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4), 60, (1e-4,), 60, 1, 0.03),
    "longer": Effort(400, (1e-3, 3e-4, 1e-4), 150, (1e-4,), 150, 1, 0.02),
    # the split of a neighbouring question nearly fits
    "again": Effort(400, (1e-3, 1e-4), 15, (1e-4,), 15, 0, 0.03),
    "many": Effort(400, (0.03, 0.01, 3e-3), 99, (1e-3, 3e-4), 500, 3, 0.03, 1.2e10),
    "wide": Effort(240, (0.03, 0.01, 3e-3, 1e-3), 99, (1e-3, 3e-4, 1e-4), 99, 4, 0.02, 9e9),
    # features were dropped: the first of two attempts
    "rough": Effort(160, (0.03, 0.01), 40, (3e-3, 1e-3), 40, 4, 0.03, 1.6e9),
    "fast": Effort(160, (0.03, 0.01), 40, (3e-3, 1e-3), 30, 4, 0.03),
    "full": Effort(
        450, (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4), 300, (3e-3, 1e-3, 3e-4, 1e-4), 150, 5, 0.02
    ),
}


def kyfan_bound(
    question: JointQuestion,
    *,
    effort: str = "fast",
    least_pad: float = 0.0,
    start: Bound | None = None,
    monitor: Monitor | None = None,
) -> Bound:
    """Return a bound on what components that answer the question explain together.

    With `least_pad`, the core is made to pay at least so much for a feature outside it. `start` is
    a Ky Fan bound for the same question, whose split and core are improved.
    """
    run = _Run(question, EFFORTS[effort], least_pad, monitor or Monitor())
    with one_blas_thread:
        return run.bound([np.asarray(support) for support in question.supports], start)


class _Run:
    def __init__(
        self, question: JointQuestion, effort: Effort, least_pad: float, monitor: Monitor
    ) -> None:
        sizes, value = question.cardinalities, question.value
        self.cov, self.nonnegative = question.cov, question.nonnegative
        self.s, self.k = max(sizes), len(sizes)
        self.total = sum(sizes) if question.total is None else question.total
        self.sizes = Sizes(self.s, self.k, self.total, self.nonnegative)
        self.overlapping = question.overlapping
        # Where the cardinalities allow more than the total, all prices have a floor.
        self.floor: float | None = None
        # The scales need a positive number; for a zero covariance any positive number will do.
        self.value = value if value > 0.0 else max(float(self.cov.diagonal.max()), 1e-280)
        self.target = value * (1.0 + question.tol)
        self.effort = effort
        self.monitor = monitor
        self.least_pad = least_pad
        self.left = effort.work
        self.room = question.room
        self.growing = True  # whether features may have to join the core

    def bound(self, supports: list[np.ndarray], start: Bound | None = None) -> Bound:
        if start is not None:
            split = KyFanSplit.of(start.data)
            a = self._core(split.features)
        else:
            features = first_core(self.cov, supports, max(self.effort.core, self.total))
            pad = self.least_pad
            if features.size < self.cov.n_features:
                pad = max(pad, self._usual_pad())
            a = self._core(features)
            split = first_split(a, features, self.sizes, pad)
            if self.overlapping:
                split = replace(split, price=np.zeros_like(split.price))
        if self.total < self.k * self.s:
            self.floor = self._marginal(supports)
        self.growing = a.shape[0] < self.cov.n_features
        best: Bound | None = None
        temperatures, steps = self.effort.temperatures, self.effort.steps
        for rounds_left in range(self.effort.rounds, -1, -1):
            split = self._optimised(a, split, temperatures, steps)
            proved, evaluated, level, features, heights = self._proved(a, split)
            gain = np.inf if best is None else best.value - proved.value
            best = proved if best is None or gain > 0.0 else best
            self.monitor.update("prove", bound=best.value)
            done = best.value <= self.target or self.monitor.stopped or self.left <= 0.0
            in_the_way, cold = (heights > level).any(), temperatures[-1] <= self.effort.later[-1]
            self.growing = bool(in_the_way)
            # what is left of a budget is spent while it pays
            slow = self.left == np.inf or gain < SLOW * (best.value - self.value)
            if done or not rounds_left or (cold and slow and not in_the_way):
                break
            if in_the_way:
                new = self._joining(a.shape[0], features, heights, level)
                if new.size == 0:
                    break
                width = 10 * self.effort.later[0] * self.value / self.total
                a, split = grown(self.cov, split, evaluated, np.sort(new), width)
            temperatures, steps = self.effort.later, self.effort.later_steps
            if cold and not in_the_way:
                temperatures = temperatures[-self._stages(a.shape[0], steps) :]
        assert best is not None
        return best

    def _joining(
        self, size: int, features: np.ndarray, heights: np.ndarray, level: float
    ) -> np.ndarray:
        """Return the features that join a core of so many: those in the way and near it, or as many
        of the worst as there is room for."""
        near = heights > NEAR * level
        new = features[near][np.argsort(-heights[near], kind="stable")]
        new = new[: int(min(new.size, max(largest_core(self.room) - size, 0)))]
        work = step_work(size + new.size, 4 * self.k) * WORTH
        return new[:0] if work > self.left else new

    def _stages(self, n: int, steps: int) -> int:
        """Return how many temperatures the work that is left suffices for, at least one."""
        return max(1, int(min(self.left / (steps * step_work(n, 4 * self.k)), 9)))

    def _core(self, features: np.ndarray) -> np.ndarray:
        a = self.cov.submatrix(features)
        return np.asarray(0.5 * (a + a.T))

    def _usual_pad(self) -> float:
        pad = self.effort.pad * self.value / self.total
        # With long supports a short optimisation cannot compensate for a pad that is too small.
        return pad * max((self.s / USUAL) ** 2, 1.0) if self.effort.steps < LONG else pad

    def _marginal(self, supports: list[np.ndarray]) -> float:
        """Return what the least useful nonzero of the answer is worth."""
        several = (support for support in supports if support.size > 1)
        lost = (least_loss(self.cov, support, self.nonnegative) for support in several)
        return max(min(lost, default=0.0), 0.0)

    def _optimised(
        self, a: np.ndarray, split: KyFanSplit, temperatures: Sequence[float], steps: int
    ) -> KyFanSplit:
        """Return the best split met while the temperature falls."""
        optimiser = KyFanOptimiser(
            a, split, self.sizes, self.value, self.floor, priced=not self.overlapping
        )
        best, lowest = split, guess(a, split, self.sizes)
        if lowest <= self.target or self.monitor.stopped:
            return split
        # where features may have to join, the work for that is kept back
        last = KEPT * self.left if self.growing else 0.0
        for mu in temperatures:
            work = self.left - last if last < np.inf else np.inf
            self.left -= optimiser.run(mu, steps, self.monitor, work, self.room)
            split, self.floor = optimiser.split(), optimiser.floor
            now = guess(a, split, self.sizes)
            if now < lowest:
                best, lowest = split, now
            if lowest <= self.target or self.monitor.stopped or self.left <= last < np.inf:
                break
        return best

    def _proved(
        self, a: np.ndarray, split: KyFanSplit
    ) -> tuple[Bound, KyFanMatrix, float, np.ndarray, np.ndarray]:
        """Prove the bound for all features; also return the outside features near its level."""
        evaluated = kyfan_matrix(a, split, self.s, self.nonnegative)
        n = evaluated.matrix.shape[0]
        level = -np.inf
        if n >= self.k:
            level = float(np.linalg.eigvalsh(evaluated.matrix)[n - self.k])
        outside = Outside(self.cov, split.features, evaluated, self.s, self.nonnegative)
        features, heights = outside.violators(min(level, NEAR * level))
        rivals, margin = heights[heights > level], SAFETY * self.cov.rounding(self.total)
        if self.overlapping:
            # a component may lie on features that were left out, where it explains nothing
            rivals = np.append(rivals, np.zeros(self.k))
            margin = SAFETY * self.k * self.cov.rounding(self.s)
        total = float(proved_sum(evaluated.matrix, rivals, self.k))
        total += top_sum(evaluated.price, self.total) * (1 + margins.prices(n))
        bound = Bound(NAME, total + margin, split.data(), margin)
        return bound, evaluated, level, features, heights
