"""Find several components by deflation: find one, take out what it explains, find the next.

With disjoint supports the features that are used are removed. For free supports Mackey (2009)
compares ways to take x out of A: projection `(I - qq')A(I - qq')` (q is the part of x orthogonal to
those before), Hotelling's `A - (x'Ax) xx'`, and the Schur complement `A - Axx'A / x'Ax`. Only
Hotelling's can leave negative eigenvalues, because x is not an eigenvector of A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..problem.covariance import LARGE_PART, Covariance, MatrixCovariance, PartCovariance
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .method import Found

DEFLATIONS = ("remove", "projection", "hotelling", "schur")


@dataclass(frozen=True)
class Single:
    """A single-component method returns this when it has a note, bounds or steps to report."""

    component: Component
    n_iter: int = 0
    note: str = ""
    bounds: tuple[Bound, ...] = ()  # proved for the covariance the method was given


def deflate(
    problem: Problem,
    options: Options,
    one: Callable[..., Component | Single],
    *,
    deflation: str = "auto",
    **method_options: object,
) -> Found:
    """Run the single-component method `one` k times, deflating in between.

    `one(problem, rng, **method_options)` answers a problem of one component.

    Bounds that `one` proves are kept only when there is a single component, because otherwise they
    do not hold for the problem as posed.
    """
    kind = _chosen(deflation, problem)
    rng = np.random.default_rng(options.seed)
    rest = _REST[kind](problem.covariance)
    found: list[Single] = []
    for j, s in enumerate(problem.cardinalities):
        # Every later component still needs a feature of its own.
        room = rest.left - (problem.k - j - 1) if kind == "remove" else rest.left
        single = Problem(rest.covariance, (min(s, room),), problem.nonnegative)
        answer = one(single, rng, **method_options)
        step = rest.original(answer if isinstance(answer, Single) else Single(answer))
        found.append(step)
        if j + 1 < problem.k:
            rest = rest.without(step.component)
        options.monitor.update("search", message=f"component {j + 1} of {problem.k}")
    return Found(
        components=tuple(step.component for step in found),
        n_iter=sum(step.n_iter for step in found),
        note=_joined([step.note for step in found]),
        bounds=found[0].bounds if problem.k == 1 else (),
        info={"deflation": kind},
    )


def _joined(notes: list[str]) -> str:
    """Join the notes of the components that fell short: the first two as they are, the others as a
    number."""
    if len(notes) == 1:
        return notes[0]
    said = [f"component {j + 1}: {note}" for j, note in enumerate(notes) if note]
    more = f"; and {len(said) - 2} more components alike" if len(said) > 2 else ""
    return "; ".join(said[:2]) + more


def _chosen(deflation: str, problem: Problem) -> str:
    """Return the deflation to use; refuse one that is unknown or does not suit the supports."""
    if deflation == "auto":
        return "remove" if problem.disjoint else "projection"
    if deflation not in DEFLATIONS:
        names = ", ".join(map(repr, DEFLATIONS))
        raise ValueError(f"deflation must be 'auto' or one of {names}, got {deflation!r}")
    if problem.disjoint and problem.k > 1 and deflation != "remove":
        raise ValueError(
            f"deflation={deflation!r} lets supports overlap, but supports='disjoint' was asked "
            "for; use deflation='remove' or supports='free'"
        )
    return deflation


class _Removed:
    """This deflation removes the features that are used; `keep` are the others, and `covariance`
    is theirs."""

    def __init__(self, whole: Covariance, keep: np.ndarray | None = None) -> None:
        self.whole = whole
        self.keep = np.arange(whole.n_features) if keep is None else keep
        if keep is None:
            self.covariance = whole
        elif isinstance(whole, MatrixCovariance) and keep.size >= LARGE_PART:
            self.covariance = PartCovariance(whole, keep)
        else:
            self.covariance = whole.restrict(keep)

    @property
    def left(self) -> int:
        return int(self.keep.size)

    def original(self, step: Single) -> Single:
        """Return the answer in the features of the whole covariance."""
        component = Component(self.keep[step.component.support], step.component.weights)
        return Single(component, step.n_iter, step.note, step.bounds)

    def without(self, component: Component) -> _Removed:
        return _Removed(self.whole, np.setdiff1d(self.keep, component.support))


class _Overlapping(ABC):
    """This deflation keeps every feature; `directions` (p, found) are the vectors taken out so
    far."""

    def __init__(self, whole: Covariance, covariance: Covariance | None = None) -> None:
        self.whole = whole
        self.covariance = whole if covariance is None else covariance
        self.directions = np.zeros((whole.n_features, 0))

    @property
    def left(self) -> int:
        return self.whole.n_features

    def original(self, step: Single) -> Single:
        return step

    def without(self, component: Component) -> _Overlapping:
        x = component.vector(self.whole.n_features)
        after = type(self)(self.whole, self.covariance)
        after.directions = np.column_stack([self.directions, x])
        after.covariance = after.deflated(x)
        return after

    @abstractmethod
    def deflated(self, x: np.ndarray) -> Covariance:
        """Return the covariance without x, which is the last of the directions."""


class _Projection(_Overlapping):
    def deflated(self, x: np.ndarray) -> Covariance:
        Q, R = np.linalg.qr(self.directions)
        # A direction that repeats earlier ones adds nothing but rounding noise to the basis.
        new = np.abs(np.diagonal(R)) > 1e-10
        return self.whole.project(Q[:, new])


class _Hotelling(_Overlapping):
    def deflated(self, x: np.ndarray) -> Covariance:
        value = float(x @ self.covariance.matvec(x))
        return Downdated(self.covariance, np.sqrt(max(value, 0.0)) * x)


class _Schur(_Overlapping):
    def deflated(self, x: np.ndarray) -> Covariance:
        Ax = self.covariance.matvec(x)
        value = float(x @ Ax)
        return Downdated(self.covariance, Ax / np.sqrt(value)) if value > 0 else self.covariance


_REST: dict[str, Callable[[Covariance], _Removed | _Overlapping]] = {
    "remove": _Removed,
    "projection": _Projection,
    "hotelling": _Hotelling,
    "schur": _Schur,
}


def beyond(covariance: Covariance, components: Iterable[Component]) -> Covariance:
    """Return the covariance that the components leave unexplained: the Schur complement on their
    directions."""
    for component in components:
        image = covariance.image(component.support, component.weights)
        own = float(component.weights @ image[component.support])
        if own > 0.0:
            covariance = Downdated(covariance, image / np.sqrt(own))
    return covariance


class Downdated(Covariance):
    """This is A - ww', never formed. It only guides the search: no bound is proved with it."""

    def __init__(self, inner: Covariance, w: np.ndarray) -> None:
        self.inner = inner
        self.w = w
        self.n_samples = inner.n_samples
        self.unit = inner.unit
        self.diagonal = inner.diagonal - w * w
        self.error_unit = inner.error_unit
        self.error_weights = inner.error_weights

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        return self.inner.matmat(Y) - np.outer(self.w, self.w @ Y)

    def image(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        own = float(self.w[support] @ weights)
        return self.inner.image(support, weights) - own * self.w

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        cols = rows if cols is None else cols
        return self.inner.submatrix(rows, cols) - np.outer(self.w[rows], self.w[cols])

    def restrict(self, keep: np.ndarray) -> Covariance:
        return Downdated(self.inner.restrict(keep), self.w[keep])
