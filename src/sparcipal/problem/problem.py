"""The question: which components, with how many nonzeros, under which constraints and options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .constraints import Constraints
from .covariance import Covariance, check_part, refuse_negative
from .monitor import Meter, Monitor


@dataclass(frozen=True)
class Problem:
    """Find components x_1..x_k, x_j a unit vector with at most cardinalities[j] nonzeros.

    With `total`, all components together have at most so many; each has at least one.

    `supports` says what components may share: nothing ("disjoint"), anything ("free"), anything
    while x_i'x_j = 0 ("orthogonal"), or everything: all components lie in one set of s features
    ("common"). The value is the sum of x_j'Ax_j, or by the objective "adjusted" what each component
    explains beyond those before it. With `uncorrelated` x_i'Ax_j = 0, so that both are the same.

    `dropped` is the largest variance among features that were screened out and are not in the
    covariance; proofs use it to choose prices that also cover those features.

    `starts` are known answers: lists of supports, one per component, that a search may begin with.

    `constraints` names features of the covariance that a component must count among its own, and
    features that none may use; the latter are set aside before a search.
    """

    covariance: Covariance
    cardinalities: tuple[int, ...]
    nonnegative: bool = False
    supports: str = "disjoint"
    total: int | None = None
    dropped: float = 0.0
    starts: tuple[tuple[np.ndarray, ...], ...] = ()
    constraints: Constraints = field(default_factory=Constraints)

    objective: str = "sum"
    uncorrelated: bool = False

    @property
    def include(self) -> tuple[tuple[int, ...], ...]:
        """The anchors of each component; empty when there are none."""
        return self.constraints.include

    @property
    def forced(self) -> np.ndarray:
        """The anchors of one component, increasing."""
        return np.array(self.include[0] if self.include else (), dtype=np.intp)

    @property
    def k(self) -> int:
        return len(self.cardinalities)

    @property
    def s_max(self) -> int:
        return max(self.cardinalities)

    @property
    def disjoint(self) -> bool:
        """Whether no feature serves twice; one component shares nothing."""
        return self.supports == "disjoint" or self.k == 1

    @property
    def common(self) -> bool:
        return self.supports == "common" and self.k > 1

    @property
    def orthogonal(self) -> bool:
        """Whether overlapping components must be orthogonal."""
        return self.supports == "orthogonal" and self.k > 1

    @property
    def adjusted(self) -> bool:
        """Whether a component counts only what those before it have not explained."""
        return self.objective == "adjusted" and self.k > 1

    @property
    def n_nonzero(self) -> int:
        """Features that all components use together, at most."""
        if self.common:
            return self.s_max
        return sum(self.cardinalities) if self.total is None else self.total

    def alone(self, s: int) -> Problem:
        """Return the question for one component of s features."""
        return Problem(self.covariance, (s,), self.nonnegative)

    def among(self, features: np.ndarray, covariance: Covariance) -> Problem:
        """Return the same question about some features, increasing, and their covariance."""
        starts = tuple(
            tuple(np.flatnonzero(np.isin(features, support)) for support in supports)
            for supports in self.starts
        )
        constraints = self.constraints.among(features)
        return replace(self, covariance=covariance, starts=starts, constraints=constraints)


@dataclass(frozen=True)
class Component:
    """One sparse unit vector: sorted feature indices and their weights."""

    support: np.ndarray  # (m,) intp, increasing
    weights: np.ndarray  # (m,) float64, unit norm

    @staticmethod
    def even(support: np.ndarray) -> Component:
        """Return the component of equal weights on a support."""
        return Component(support, np.full(support.size, support.size**-0.5))

    @staticmethod
    def from_vector(x: np.ndarray) -> Component:
        support = np.flatnonzero(x)
        weights = np.asarray(x[support], dtype=np.float64)
        return Component(support, weights / np.linalg.norm(weights))

    def vector(self, n_features: int) -> np.ndarray:
        x = np.zeros(n_features)
        x[self.support] = self.weights
        return x


@dataclass(frozen=True)
class Options:
    """The shared keywords of every method, already validated."""

    rank: int | None = None
    seed: int = 0
    n_jobs: int = 1
    tol: float = 1e-6
    aim: float = 0.0  # a proof of one component need not close a gap below this
    max_nodes: int | None = None
    room: float = np.inf  # bytes that a proof may take
    monitor: Monitor = field(default_factory=Monitor)
    meter: Meter = field(default_factory=Meter)  # of searches, or of the proof of one component


def informative(whole: Problem) -> np.ndarray:
    """Return the features to search among: those that are neither excluded nor constant.

    A constant feature has zero covariance with every other one, so it adds nothing to any
    component. When fewer others are left than there are nonzeros, some of them stay to fill the
    supports, and so do anchors. Where rounding has left a negative variance in a given matrix, all
    stay, because the zero of a constant feature is then better.
    """
    covariance, asked = whole.covariance, whole.constraints
    allowed = np.ones(covariance.n_features, dtype=bool)
    allowed[list(asked.exclude)] = False
    alive = allowed & ~covariance.inert
    # what varies in the data and not in units has underflowed altogether
    largest = float(covariance.diagonal[alive].max(initial=0.0))
    small = alive.any() and covariance.diagonal[alive].min() >= 0.0 and largest < 1e-100
    if asked.exclude and small:
        unit = covariance.unit
        raise ValueError(
            f"exclude: no other feature has a variance above {largest * unit:.3g}, so small beside "
            f"those of the excluded ones ({float(covariance.diagonal.max()) * unit:.3g}) that "
            "squares underflow; remove the excluded columns from X instead"
        )
    if asked.exclude and covariance.psd_shift > 0:
        check_part(covariance, np.flatnonzero(allowed))
    if (covariance.diagonal[alive] < 0).any():
        if whole.adjusted and whole.disjoint:
            refuse_negative(covariance, np.flatnonzero(alive))
        return np.flatnonzero(allowed)
    alive[[feature for anchors in asked.include for feature in anchors]] = True
    missing = whole.n_nonzero - int(alive.sum())
    if missing > 0:
        alive[np.flatnonzero(allowed & ~alive)[:missing]] = True
    return np.flatnonzero(alive)
