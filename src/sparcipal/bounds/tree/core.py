"""Bound "tree"; statement and proof: docs/methods/tree.rst. The core, for thousands of features.

Supports inside the core H are settled by branch and bound. Those that leave it are settled by the
touch certificate (`touch.py`) at a level t: the value itself where that succeeds, otherwise a level
above it by about what the root of the branch and bound leaves open. The core starts with the
support and what would add most to it; features that speak against the level join it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...numerics import margins
from ...numerics.margins import power_of_two
from ...problem.components import newcomer_gain, removals
from ...problem.covariance import Covariance
from ..pairsplit import Optimiser, Part, Split, best_start, split_matrix
from ..pairsplit.certificate import top_eigenvalue
from ..pairsplit.optimise import step_work
from ..pairsplit.starts import clipped
from ..touch import Attempt, Strata, Touch
from .fixing import fix
from .incumbent import Rounder
from .listing import list_above
from .log import Proof
from .question import TreeQuestion
from .search import prove

CORE = 90  # features of the first core, besides the support
MOST_CORE = 900
ROUNDS = 10
# Smoothing from a start, relative to the value, and from the certificate of a smaller core; where
# features that joined put that one far above the level, a few steps lead it back first.
COLD = (1e-2, 3e-3, 1e-3)
WARM = (1e-3, 3e-4)
FAR, BACK = 1e-2, 50
STEPS = 100  # of a smoothing, at most
EASY = 30  # nonzeros up to which a level is tried after every smoothing
ROOT_STEPS = 60
# In units of what the last feature adds to the value:
PAD = 0.6  # what the core is charged for a feature outside while it is optimised, at first
LESS, LEAST_PAD = 0.4, 0.03  # from these pads to smaller ones, where the core stays above the level
BELOW = 0.3  # how far below the level the optimisation aims
ROOM = 0.15  # least distance of M^1 from a level that is tried
LIFT = 0.5  # how far above M^1 features that should join are looked for, where it is closer
CLOSE = 0.1  # gap of the root up to which the value itself is tried
CLIPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)
SHAPING = 1e9  # work for shapes of pads in one attempt, with the default effort
WORK = 8.5e9  # of the default effort in all, unless a proof is about to close
ROUNDS_END = 0.85  # of the work: what is left then serves to try levels with the last core
LOWEST = 0.1  # of the work: what the lowest level of the last core may take in any case
LEAST_TREE = 1e9  # what the tree may take in any case, as it counts
COUNTED = 1.6  # what a tree on a core counts for a unit of work, cautiously
MANY = 2.6e7  # nanoseconds of a step on the first core for which the default effort is too small
NEAR = 0.1  # distance at which a level counts as the lowest that can be certified
ORDER = 2.5  # the work of a round grows about with this power of the number of features
HELPFUL = 0.5  # least share of the features that should join for which a larger core is tried
# With more nonzeros the default effort first aims at a level so far above the value, for which few
# steps and fewer features are enough.
ROUGH_FROM, ROUGH = 150, 0.008
ENOUGH = 0.6  # of the work: where less was spent for such a level, a lower one is tried
MOST_ROUGH = 1100  # features of a core at such a level
CLOSING = 0.1  # features that should join, relative to the core, up to which work may go on
LONGER = 2.0  # times the work may be spent there, and where only the tree is missing
# Where uniform pads reach no lower than SLOW times what they did, STALLED times in a row, the core
# is given up.
SLOW, STALLED = 0.9, 2
LOOSE = 0.02  # gap of the level, relative to the value, beyond which the core is proved roughly


def prove_large(
    cov: Covariance, s: int, question: TreeQuestion | None = None, *, first_core: int | None = None
) -> Proof:
    """Do what `prove` does where columns are formed on demand; there are no prices and pads.

    `first_core` is the number of features of the first core (CORE); it grows where that does not
    suffice.
    """
    question = question or TreeQuestion()
    search = _Extension(cov, s, question, CORE if first_core is None else first_core)
    search.start(question.incumbent)
    touch = search.touching(question.start)
    inside = search.inside(touch, question)
    if question.effort == "full" and inside.bound < touch.level and inside.status == "optimal":
        # the tree closes: whatever is left is the level beyond the core
        if inside.value > search.value:
            search.support, search.value = touch.core[inside.support], inside.value
        lower = search.lowered(touch, search.threshold)
        if lower.core.size > touch.core.size:
            inside = search.inside(lower, question)
        touch = lower
    return search.combine(touch, inside)


def affordable(s: int, effort: str | float) -> bool:
    """Return whether the default effort suffices for more than a first core for s nonzeros."""
    return effort != "fast" or step_work(max(CORE, 2 * s)) <= MANY


def _affordable_core(work: float, now: int, spent: float) -> int:
    """Return how many features a core may have for so much work, if `now` features took `spent`."""
    return int(now * min(max(work / spent, 0.0), 1e6) ** (1 / ORDER))


class _Extension:
    """The search for a core, and for a certificate of the supports that leave it."""

    def __init__(self, cov: Covariance, s: int, question: TreeQuestion, core_size: int) -> None:
        if not 1 <= s <= cov.n_features:
            raise ValueError(
                f"s must lie between 1 and the number of features {cov.n_features}, got {s}"
            )
        self.cov, self.s, self.nonnegative = cov, s, question.nonnegative
        self.tol, self.monitor = max(question.tol, 1e-9), question.monitor
        self.core_size = core_size
        self.scale = max(float(cov.diagonal.max()), 1e-300)
        self.value, self.support = -np.inf, np.empty(0, dtype=np.intp)
        self.work, self.n_eigen, self.limit = 0.0, 0, np.inf
        self.known = question.known
        self.clip = len(CLIPS) // 2  # the one that served last
        self.pad = PAD
        self.forced = question.anchors
        self.level = question.level
        fast = question.effort == "fast"
        self.rough = fast and s > ROUGH_FROM and self.level is None
        self.shaping = (0.0 if self.rough else SHAPING) if fast else np.inf
        # the core and the tree together
        self.most = min(question.limit, WORK) if fast else question.work

    @property
    def threshold(self) -> float:
        base = self.value if self.level is None else self.level
        return base + margins.SETTLED * self.tol * max(abs(self.value), self.scale)

    def start(self, incumbent: tuple[np.ndarray, float] | None) -> None:
        """Take the given support, or search among the features of largest variance."""
        if incumbent is None:
            heavy = np.argsort(-self.cov.diagonal, kind="stable")[: max(300, 3 * self.s)]
            heavy = np.union1d(heavy, self.forced)
            block, inside = self.cov.submatrix(heavy), np.searchsorted(heavy, self.forced)
            rounder = Rounder(block, self.s, np.zeros(heavy.size), self.nonnegative, inside)
            found = rounder.first()
            self.support, self.value = heavy[found.support], found.value
            return
        support = np.union1d(np.asarray(incumbent[0], dtype=np.intp), self.forced)
        if not 0 < support.size <= self.s:
            raise ValueError(f"the incumbent must have between 1 and {self.s} features")
        block = self.cov.submatrix(support)
        rounder = Rounder(block, self.s, np.zeros(support.size), self.nonnegative)
        self.support, self.value = support, rounder.evaluate(np.arange(support.size))[0]

    def first_core(self) -> np.ndarray:
        """Return the support, what would add most to it, and the largest variances."""
        diagonal, p = self.cov.diagonal, self.cov.n_features
        block = self.cov.submatrix(self.support)
        x = np.zeros(p)
        rounder = Rounder(block, self.s, np.zeros(self.support.size), self.nonnegative)
        x[self.support] = rounder.evaluate(np.arange(self.support.size))[1]
        link = self.cov.matvec(x)
        score = newcomer_gain(self.value, diagonal, link, self.nonnegative)
        if not self.rough:
            # a feature of large variance is worth having in the core whatever it adds
            score = diagonal + score
        size = min(p, max(self.core_size, 2 * self.s))
        best = np.argsort(-score, kind="stable")[:size]
        return np.union1d(self.support, best)

    def last_gain(self) -> float:
        """Return about how far the optimum for s - 1 features lies below that for s; not too
        small."""
        block, n = self.cov.submatrix(self.support), self.support.size
        rounder = Rounder(block, self.s, np.zeros(n), self.nonnegative)
        weights = rounder.evaluate(np.arange(n))[1]
        smaller = float(removals(block, weights, self.nonnegative)[1].max())
        return max(self.value - smaller, 0.02 * max(self.value, self.scale) / self.s)

    def touching(self, start: Touch | None) -> Touch:
        """Certify the supports that leave the core, letting the core grow as needed."""
        if self.forced.size == self.s:  # none does
            nothing = clipped(self._part(self.forced, 0.0), 0.0)
            return Touch(self.forced, nothing, self.threshold, self.forced[:0], ())
        gain = self.last_gain()
        level = self.threshold
        if self.rough:
            level = max(level, min(self.value * (1 + ROUGH), 0.5 * (self.value + self.known)))
        split: Split | None = None
        budget = self.limit = self.most - LEAST_TREE / COUNTED
        if start is None:
            core = self.first_core()
        else:
            core, split = self._grow(start.core, start.split, self.support, self.pad * gain)
            as_it_is = self._unchanged(core, split, level, gain)
            if as_it_is is not None:
                return as_it_is
        best: Touch | None = None
        least, stalled = np.inf, 0
        for number in range(ROUNDS):
            before = self.work
            strata, tried, attempt = self._round(core, split, level, gain)
            spent = (self.work - before) * (len(WARM) / len(COLD) if split is None else 1.0)
            split = strata.split
            done = attempt.touch is not None and tried == level
            if number == 0 and not done and self.level is None and not self.rough:
                level = self._lifted(core, split, gain)
                if level > self.threshold:
                    tried, attempt = self._attempt(strata, level, gain, shaping=0.0)
            if attempt.touch is not None:
                if best is None or attempt.touch.level < best.level:
                    best = attempt.touch
                if tried == level:
                    if level <= self.threshold or not self.work < ENOUGH * budget < np.inf:
                        return best
                    level = self._lifted(core, split, gain)
                    if level > self.threshold and not self.rough:
                        return best
                    self.rough, self.shaping = False, SHAPING
                    continue
            largest = MOST_ROUGH if self.rough else MOST_CORE
            above = tried > level  # the core itself
            closing = not above and attempt.joining.size <= CLOSING * core.size
            self.limit = (LONGER if closing else 1.0) * budget
            room_for = _affordable_core(self.limit - self.work, core.size, spent)
            room = min(room_for, largest) - core.size
            joining = attempt.joining[: min(2 * core.size, max(room, 0))]
            # a few of the features that should join do not help the others
            too_few = joining.size < HELPFUL * attempt.joining.size
            reach = strata.uniform_level() - level
            least, stalled = min(least, reach), stalled + 1 if reach > SLOW * least else 0
            hopeless = (stalled >= STALLED and not above) or strata.top() >= self.known
            given_up = np.isfinite(budget) and hopeless and not closing
            out_of_budget = self.monitor.stopped is not None or room < 0 or too_few or given_up
            if above and not self._smaller_pads() and not joining.size:
                break
            if out_of_budget or core.size >= largest:
                break
            if core.size + joining.size >= self.cov.n_features:
                return self._everything()
            core, split = self._grow(core, split, joining, self.pad * gain)
        if self.cov.n_features <= MOST_CORE and not out_of_budget:
            return self._everything()
        return self._lowest(strata, tried if attempt.touch is None else level, gain, best)

    def _smaller_pads(self) -> bool:
        """Optimise with smaller pads from now on, unless they are hardly worth mentioning."""
        if self.pad <= LEAST_PAD:
            return False
        self.pad *= LESS
        return True

    def _unchanged(self, core: np.ndarray, split: Split, level: float, gain: float) -> Touch | None:
        """Return the certificate of a neighbouring cardinality if it serves as it is."""
        strata = Strata(self.cov, self.s, self.nonnegative, core, split, self.forced)
        if strata.top() > level - ROOM * gain:
            return None
        return self._attempt(strata, level, gain, self.shaping / 8)[1].touch

    def lowered(self, touch: Touch, level: float) -> Touch:
        """Return the lowest certificate from this level on, from the core and the split of another
        one."""
        gain = self.last_gain()
        core, split = touch.core, touch.split
        for _ in range(ROUNDS):
            strata, tried, attempt = self._round(core, split, level, gain)
            split = strata.split
            if attempt.touch is not None and tried < touch.level:
                touch = attempt.touch
            if touch.level <= level:
                return touch
            joining, room = attempt.joining[: 2 * core.size], MOST_CORE - core.size
            too_few = room < HELPFUL * joining.size
            smaller = tried > level and self._smaller_pads()
            if self.monitor.stopped is not None or too_few or not (joining.size or smaller):
                break
            core, split = self._grow(core, split, joining[:room], self.pad * gain)
        low = tried if attempt.touch is None else level
        return self._lowest(strata, low, gain, touch)

    def inside(self, touch: Touch, question: TreeQuestion) -> Proof:
        """Branch and bound on the core; what bounds the others is a good start."""
        block = self.cov.submatrix(touch.core)
        first = touch.split.scaled(1.0 / power_of_two(float(np.abs(block).max())))
        place = np.searchsorted(touch.core, self.support)
        asked = replace(
            question,
            incumbent=(place, self.value),
            start=first if touch.groups else None,
            forced=np.searchsorted(touch.core, self.forced),
        )
        if self.level is not None:
            return list_above(block, self.s, asked)
        fast = question.effort == "fast"
        if question.share < 1.0:
            work, nodes = question.share * question.work, question.most_nodes
            asked = replace(asked, effort=work, max_nodes=nodes)
        elif fast and touch.level <= self.threshold:
            # only the tree is missing, and is about to close unless it is on all features
            most = 2 * question.work if touch.groups else question.work
            work = max(min(most, COUNTED * (LONGER * self.most - self.work)), LEAST_TREE)
            asked = replace(asked, effort=work, max_nodes=question.most_nodes)
        elif fast:
            # a core that is proved to less than the level does not lower the bound
            above = (touch.level - self.value) / max(abs(self.value), self.scale)
            rough, left = self.rough or above > LOOSE, COUNTED * (self.most - self.work)
            work = LEAST_TREE if rough else max(LEAST_TREE, min(question.work, left))
            asked = replace(
                asked, tol=max(asked.tol, above), effort=work, max_nodes=question.most_nodes
            )
        return prove(block, self.s, asked)

    def _round(
        self, core: np.ndarray, split: Split | None, level: float, gain: float
    ) -> tuple[Strata, float, Attempt]:
        """Optimise the core's certificate and try the level; easy ones after every smoothing."""
        stages = self._optimised(core, split, self.pad * gain, level - BELOW * gain)
        for made, final in stages:
            if not final and self.s > EASY:
                continue
            strata = Strata(self.cov, self.s, self.nonnegative, core, made, self.forced)
            tried, attempt = self._attempt(
                strata, level, gain, shaping=self.shaping if final else 0.0
            )
            if attempt.touch is not None and tried == level:
                break
        return strata, tried, attempt

    def _attempt(
        self, strata: Strata, level: float, gain: float, shaping: float
    ) -> tuple[float, Attempt]:
        """Try the level, or a higher one where the core itself does not lie below it."""
        top = strata.top()
        tried = level if top <= level - ROOM * gain else top + LIFT * gain
        before = strata.work
        attempt = strata.attempt(tried, shaping, self.monitor)
        self.work += strata.work - before
        return tried, attempt

    def _lowest(self, strata: Strata, low: float, gain: float, touch: Touch | None) -> Touch:
        """Return about the lowest level that this core can certify, as far as the budget goes.

        `low` is too low, and `touch` is the best certificate so far.
        """
        before = strata.work
        last = before + max(self.limit - self.work, LOWEST * self.limit)
        low = max(low, strata.top())
        step = max(gain, strata.uniform_level() - low)
        while touch is None or low + step < touch.level:
            found = strata.attempt(low + step, shaping=0.0).touch
            if found is not None:
                touch = found
                break
            longer = 2 if self.monitor.stopped is None and strata.work < last else 8
            low, step = low + step, longer * step
        while self.monitor.stopped is None and strata.work < last and low < self.known:
            near = NEAR * max(gain, min(touch.level, self.known) - self.threshold)
            if touch.level - low <= near:
                break
            middle = 0.5 * (low + touch.level)
            found = strata.attempt(middle, self.shaping / 4, self.monitor).touch
            if found is None:
                low = middle
            else:
                touch = found
        self.work += strata.work - before
        return touch

    def _lifted(self, core: np.ndarray, split: Split, gain: float) -> float:
        """Return the value if the root of the branch and bound may close, else about its bound."""
        n = core.size
        part = Part(
            np.arange(n), self.cov.submatrix(core), np.isin(core, self.forced), np.zeros(n), self.s,
            self.nonnegative, np.zeros(n),
        )  # fmt: skip
        for mu in WARM[:2]:
            optimiser = Optimiser(part, split.on(part.features))
            optimiser.run(
                mu * max(self.value, self.scale), ROOT_STEPS, self.threshold, self.monitor
            )
            self.n_eigen += optimiser.n_eigen
            self.work += optimiser.work
            split = optimiser.split()
            while True:
                found = fix(part, split_matrix(part, split), self.threshold)
                self.work += float(part.n) ** 3
                if found.closed or (found.out & found.into).any():
                    return self.threshold
                if not found.any:
                    break
                part = part.restrict(~found.out, part.forced | found.into)
                if part.n <= self.s or part.n_forced >= self.s:
                    return self.threshold
                split = split.on(part.features)
        gap = max(found.top - self.value, 0.0)
        return self.threshold if gap < CLOSE * gain else self.value + gap

    def _everything(self) -> Touch:
        """All features are the core: no support leaves it."""
        p = self.cov.n_features
        nothing = np.empty(0, dtype=np.intp)
        split = clipped(self._part(np.arange(p), 0.0), 0.0)
        return Touch(np.arange(p), split, -np.inf, nothing, ())

    def _part(self, core: np.ndarray, pad: float) -> Part:
        """Return the problem of a core with one feature outside: one feature less, and pads."""
        n = core.size
        a = self.cov.submatrix(core)
        a[np.diag_indices(n)] += pad
        return Part(
            np.arange(n), a, np.isin(core, self.forced), np.zeros(n), max(self.s - 1, 1),
            self.nonnegative, np.full(n, pad),
        )  # fmt: skip

    def _optimised(
        self, core: np.ndarray, split: Split | None, pad: float, target: float
    ) -> Iterator[tuple[Split, bool]]:
        """Yield the core's certificate with pads after each smoothing, and if it is the last."""
        part = self._part(core, pad)
        unit, first_steps = max(self.value, self.scale), STEPS
        smoothing = COLD if split is None else WARM
        if split is None:
            split, count = best_start(part)
            self.n_eigen += count
            self.work += count * 0.4 * float(part.n) ** 3
        elif top_eigenvalue(split_matrix(part, split).matrix) > target + FAR * unit:
            smoothing, first_steps = (FAR, *WARM), BACK
        if self.s == 1:
            yield split, True
            return
        for mu in smoothing:
            optimiser = Optimiser(part, split)
            left = ROUNDS_END * self.limit - self.work
            steps = first_steps if mu == smoothing[0] else STEPS
            optimiser.run(mu * unit, steps, target, self.monitor, left)
            self.n_eigen += optimiser.n_eigen
            self.work += optimiser.work
            split = optimiser.split()
            final = mu == smoothing[-1] or self.monitor.stopped is not None
            final = final or self.work >= ROUNDS_END * self.limit
            final = final or top_eigenvalue(split_matrix(part, split).matrix) <= target
            yield split, final
            if final:
                return

    def _grow(
        self, core: np.ndarray, split: Split, new: np.ndarray, pad: float
    ) -> tuple[np.ndarray, Split]:
        """Features join the core: its certificate stays, pairs with them are clipped."""
        larger = np.union1d(core, new)
        n = larger.size
        if n == core.size:
            return core, split
        old = np.searchsorted(larger, core)
        part = self._part(larger, pad)
        upper = np.triu_indices(n, 1)
        largest = float(np.abs(part.a[upper]).max(initial=0.0))
        tried: dict[int, tuple[float, Split]] = {}

        def top(place: int) -> float:
            if not 0 <= place < len(CLIPS):
                return np.inf
            if place not in tried:
                start = clipped(part, CLIPS[place] * largest)
                u, r = start.u, start.r
                u[np.ix_(old, old)], r[np.ix_(old, old)] = split.u, split.r
                trial = Split.rounded(np.arange(n), upper, u[upper], r[upper])
                tried[place] = top_eigenvalue(split_matrix(part, trial).matrix), trial
            return tried[place][0]

        # from the clip that served last downhill, as the largest eigenvalue has one valley
        best = self.clip
        while top(beside := min((best - 1, best + 1), key=top)) < top(best):
            best = beside
        self.clip = best
        self.n_eigen += len(tried)
        self.work += len(tried) * 0.1 * float(n) ** 3
        return larger, tried[best][1]

    def combine(self, touch: Touch, inside: Proof) -> Proof:
        """Return what is proved of both kinds of supports together."""
        slack = margins.OPEN * self.tol * max(abs(inside.value), self.scale)
        bound = max(inside.bound, touch.level + slack)
        status = inside.status
        if touch.level > self.threshold and bound > inside.value + self.tol * max(
            abs(inside.value), self.scale
        ):
            status = self.monitor.stopped or "nodes"
        return replace(
            inside,
            support=touch.core[inside.support],
            listed=tuple(touch.core[support] for support in inside.listed),
            bound=bound,
            status=status,
            n_eigen=inside.n_eigen + self.n_eigen,
            work=self.work + inside.work / COUNTED,
            eliminated=self.cov.n_features - touch.core.size + inside.eliminated,
            touch={**touch.record(), "bound": bound} if touch.level > -np.inf else None,
            again=touch if touch.level > -np.inf else None,
        )
