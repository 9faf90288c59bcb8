"""Bound "tree"; statement and proof: docs/methods/tree.rst.

Thousands of features: a proof on a small core that holds for all.

Let H be the core and L all other features. Supports inside H are settled by branch and bound. For
a support S that touches L, split every pair outside H x H completely: U_ja = A_ja, V_aj = pad_a
and V_ja = A_ja^2 / pad_a for a in H, j in L, and U_jl = A_jl, V_jl = |A_jl| within L. A row a of
H is charged pad_a at least once (S touches L) and s - 2 further terms, V_ab or pad_a; so M is
block diagonal with

    M_HH = A_HH - U + Diag(pad_a + the s - 2 largest of {V_ab} and copies of pad_a),
    m_j  = A_jj + the s - 1 largest of {A_ja^2 / pad_a} and {|A_jl|},

and the value of S is at most max(lambda_max(M_HH), max_j m_j). M_HH is a pair-split matrix for s
- 1 features: it lies below the optimum for s by what the last feature adds, so the bound need not
be tight. For x >= 0 only positive A_ja and A_jl count.

Features outside are looked at in three steps, each for those that the one before could not clear:
|A_jl|^2 <= A_jj A_ll for all entries; exact entries to H; exact entries to everything. So the
matrix is never formed, and most features cost nothing beyond their variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import power_of_two
from ...problem.components import newcomer_gain
from ...problem.covariance import Covariance
from ..outside import Outside
from ..pairsplit import Optimiser, Part, Split, best_start, prove_below, proven_bound, split_matrix
from ..pairsplit.certificate import top_eigenvalue
from ..pairsplit.starts import clipped
from .incumbent import Rounder
from .log import Proof
from .question import TreeQuestion
from .search import prove

CORE = 120  # features of the first core, besides the support
MOST_CORE = 900
ROUNDS = 12
SMOOTHING = (1e-2, 3e-3, 1e-3, 3e-4)
PAD = 0.6  # of what the last feature adds: the first pad


@dataclass(frozen=True)
class Touch:
    """A certificate for the supports that touch L, and what it gives."""

    core: np.ndarray  # increasing
    split: Split  # on positions within the core
    pad: np.ndarray  # the same for every row
    inner: float  # proven bound of lambda_max(M_HH)
    outer: float  # max m_j, rounded up
    violators: np.ndarray  # features with m_j above the threshold, worst first

    @property
    def bound(self) -> float:
        return max(self.inner, self.outer)

    def record(self) -> dict[str, Any]:
        """What a proof stores."""
        return {
            "core": self.core.astype(np.int32),
            "pad": float(self.pad[0]),
            "split": dict(self.split.origin),
        }


def prove_large(
    cov: Covariance, s: int, question: TreeQuestion | None = None, *, first_core: int = CORE
) -> Proof:
    """`prove` for a covariance whose columns are formed on demand; prices and pads are left out.

    `first_core` is the number of features of the first core; it grows where that does not suffice.
    """
    question = question or TreeQuestion()
    search = _Extension(cov, s, question, first_core)
    search.start(question.incumbent)
    budget = question.work
    touch, done = search.touching(budget, question.start)
    core = touch.core
    place = np.searchsorted(core, search.support)
    block = cov.submatrix(core)
    # what bounds the supports that leave the core is a good start for those that do not
    first = touch.split.scaled(1.0 / power_of_two(float(np.abs(block).max())))
    effort = question.effort
    inside = replace(
        question,
        incumbent=(place, search.value),
        effort=effort if effort == "full" else max(budget - search.work, 0.25 * budget),
        start=first if touch.bound > -np.inf else None,
    )
    return search.combine(touch, prove(block, s, inside), done)


class _Extension:
    """The search for a core, and for a certificate of the supports that leave it."""

    def __init__(self, cov: Covariance, s: int, question: TreeQuestion, core_size: int) -> None:
        if not 1 <= s <= cov.n_features:
            raise ValueError(
                f"s must lie between 1 and the number of features {cov.n_features}, got {s}"
            )
        self.cov, self.s, self.nonnegative = cov, s, question.nonnegative
        self.tol, self.monitor, self.core_size = (
            max(question.tol, 1e-9),
            question.monitor,
            core_size,
        )
        self.scale = max(float(cov.diagonal.max()), 1e-300)
        self.value, self.support = -np.inf, np.empty(0, dtype=np.intp)
        self.work, self.n_eigen = 0.0, 0
        self.outside = Outside(cov, s, self.nonnegative)

    @property
    def threshold(self) -> float:
        return self.value + margins.SETTLED * self.tol * max(abs(self.value), self.scale)

    def start(self, incumbent: tuple[np.ndarray, float] | None) -> None:
        """Take the given support, or search among the features of largest variance."""
        if incumbent is None:
            heavy = np.sort(np.argsort(-self.cov.diagonal, kind="stable")[: max(300, 3 * self.s)])
            block = self.cov.submatrix(heavy)
            rounder = Rounder(block, self.s, np.zeros(heavy.size), self.nonnegative)
            found = rounder.first()
            self.support, self.value = heavy[found.support], found.value
            return
        support = np.unique(np.asarray(incumbent[0], dtype=np.intp))
        if not 0 < support.size <= self.s:
            raise ValueError(f"the incumbent must have between 1 and {self.s} features")
        block = self.cov.submatrix(support)
        rounder = Rounder(block, self.s, np.zeros(support.size), self.nonnegative)
        self.support, self.value = support, rounder.evaluate(np.arange(support.size))[0]

    def first_core(self) -> np.ndarray:
        """The support, what would add most to it, and the largest variances."""
        diagonal, p = self.cov.diagonal, self.cov.n_features
        block = self.cov.submatrix(self.support)
        x = np.zeros(p)
        rounder = Rounder(block, self.s, np.zeros(self.support.size), self.nonnegative)
        x[self.support] = rounder.evaluate(np.arange(self.support.size))[1]
        link = self.cov.matvec(x)
        # a feature of large variance is worth having in the core whatever it adds
        score = diagonal + newcomer_gain(self.value, diagonal, link, self.nonnegative)
        size = min(p, max(self.core_size, 2 * self.s))
        best = np.argsort(-score, kind="stable")
        heavy = np.argsort(-diagonal, kind="stable")[: size // 3]
        core = np.unique(np.concatenate([self.support, best[: (2 * size + 2) // 3], heavy]))
        return core if core.size >= self.s else np.union1d(core, best[:size])

    def last_gain(self) -> float:
        """About how far the optimum for s - 1 features lies below that for s; not too small."""
        block, n = self.cov.submatrix(self.support), self.support.size
        rounder = Rounder(block, self.s, np.zeros(n), self.nonnegative)
        rests = [np.delete(np.arange(n), i) for i in range(n)] if n > 1 else []
        smaller = max((rounder.evaluate(rest)[0] for rest in rests), default=0.0)
        return max(self.value - smaller, 0.02 * max(self.value, self.scale) / self.s)

    def touching(self, budget: float, start: Touch | None) -> tuple[Touch, bool]:
        """Certify the supports that leave the core, letting the core grow as needed."""
        pad = PAD * self.last_gain()
        split: Split | None = None
        if start is None:
            core = self.first_core()
        else:
            core, split = self._grow(start, np.setdiff1d(self.support, start.core))
        attempts: list[Touch] = []
        for _ in range(ROUNDS):
            touch = self._attempt(core, pad, split)
            attempts.append(touch)
            if touch.bound <= self.threshold:
                return touch, True
            out_of_budget = self.monitor.stopped is not None or self.work > 0.75 * budget
            if out_of_budget or core.size >= MOST_CORE:
                break
            if touch.inner > self.threshold:
                pad = max(pad - 1.1 * (touch.inner - self.threshold), 0.4 * pad)
                split = touch.split
                continue
            new = touch.violators[: max(60, core.size // 2)]
            core, split = self._grow(touch, np.sort(new))
            pad = float(touch.pad[0])
        if self.cov.n_features <= MOST_CORE and not out_of_budget:
            return self._everything(), True
        return min(attempts, key=lambda attempt: attempt.bound), False

    def _everything(self) -> Touch:
        """All features are the core: no support leaves it."""
        p = self.cov.n_features
        part = self._part(np.arange(p), np.full(p, self.scale))
        nothing = np.empty(0, dtype=np.intp)
        return Touch(np.arange(p), clipped(part, 0.0), part.pad, -np.inf, -np.inf, nothing)

    def _part(self, core: np.ndarray, pad: np.ndarray) -> Part:
        """The pair-split problem of M_HH: one feature less, pads on the diagonal."""
        a = self.cov.submatrix(core)
        a[np.diag_indices(core.size)] += pad
        n = core.size
        return Part(
            np.arange(n), a, np.zeros(n, dtype=bool), np.zeros(n), self.s - 1, self.nonnegative, pad
        )

    def _attempt(self, core: np.ndarray, level: float, split: Split | None) -> Touch:
        """Optimise until M_HH is below the threshold, then look at all other features."""
        pad = np.full(core.size, level)
        part = self._part(core, pad)
        if self.s == 1:
            split, inner = best_start(part)[0], -np.inf
        else:
            split, inner = self._optimise(part, split)
            if inner <= self.threshold:
                pad = self._raise(core, pad, split)
        outer = self.outside.largest(core, pad, self.threshold)
        self.work += outer.work
        return Touch(core, split, pad, inner, outer.bound, outer.violators)

    def _optimise(self, part: Part, split: Split | None) -> tuple[Split, float]:
        """Down to the threshold and somewhat below it: what is left over raises the pads."""
        if split is None:
            split, count = best_start(part)
            self.n_eigen += count
        target = self.threshold - 0.5 * float(part.pad[0])
        for mu in SMOOTHING:
            optimiser = Optimiser(part, split)
            optimiser.run(mu * max(self.value, self.scale), 100, target)
            self.n_eigen += optimiser.n_eigen
            self.work += optimiser.work
            split = optimiser.split()
            matrix = split_matrix(part, split).matrix
            if self.monitor.stopped is not None or prove_below(matrix, target):
                break
        if prove_below(matrix, self.threshold):
            return split, self.threshold
        return split, proven_bound(matrix, top_eigenvalue(matrix), self.scale)

    def _raise(self, core: np.ndarray, pad: np.ndarray, split: Split) -> np.ndarray:
        """The largest multiple of the pads for which M_HH stays below the threshold."""
        low, high = 1.0, 4.0
        for _ in range(6):
            middle = 0.5 * (low + high)
            part = self._part(core, middle * pad)
            if prove_below(split_matrix(part, split).matrix, self.threshold):
                low = middle
            else:
                high = middle
        return low * pad

    def _grow(self, touch: Touch, new: np.ndarray) -> tuple[np.ndarray, Split]:
        """Violators join the core; the certificate continues as it was outside."""
        core = np.union1d(touch.core, new)
        n = core.size
        old, fresh = np.searchsorted(core, touch.core), np.searchsorted(core, new)
        u, r = np.zeros((n, n)), np.zeros((n, n))
        u[np.ix_(old, old)], r[np.ix_(old, old)] = touch.split.u, touch.split.r
        u[np.ix_(fresh, fresh)] = self.cov.submatrix(new)
        cross = self.cov.submatrix(touch.core, new)
        u[np.ix_(old, fresh)], u[np.ix_(fresh, old)] = cross, cross.T
        ratio = np.log(touch.pad)[:, None] - np.log(np.maximum(np.abs(cross), 1e-6 * self.scale))
        r[np.ix_(old, fresh)], r[np.ix_(fresh, old)] = ratio, -ratio.T
        upper = np.triu_indices(n, 1)
        return core, Split.rounded(np.arange(n), upper, u[upper], r[upper])

    def combine(self, touch: Touch, inside: Proof, done: bool) -> Proof:
        """Both kinds of supports together."""
        slack = margins.OPEN * self.tol * max(abs(inside.value), self.scale)
        bound = max(inside.bound, touch.bound + slack)
        status = inside.status
        if not done and bound > inside.value + self.tol * max(abs(inside.value), self.scale):
            status = self.monitor.stopped or "nodes"
        return replace(
            inside,
            support=touch.core[inside.support],
            bound=bound,
            status=status,
            n_eigen=inside.n_eigen + self.n_eigen,
            eliminated=self.cov.n_features - touch.core.size + inside.eliminated,
            extension={**touch.record(), "bound": bound} if touch.bound > -np.inf else None,
            again=touch if touch.bound > -np.inf else None,
        )
