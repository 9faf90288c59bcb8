"""DSPCA by block coordinate ascent with safe elimination (Zhang & El Ghaoui 2011).

For a penalty l, features of variance below l are set aside, the relaxation of relaxation.py is
solved on the others, and the component is the leading eigenvector of its solution, cut to size.
A coarse search over l finds the cardinality.

What the solutions of the relaxation prove is the bound "dspca-dual" (bounds/duals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bounds.duals import dspca_dual
from ...numerics.margins import SAFETY
from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ...problem.result import Bound
from ..deflation import Single, deflate
from ..method import Found, Method
from ..penalty import check_penalty, fewer
from ..relaxation import Relaxation, Start, Sweeps, ascend, soft_threshold
from .threshold import truncate

# The relaxation is solved for at most so many features at a time.
CORE_LIMIT = 1500
# Loadings below this fraction of the largest are artefacts of the barrier.
NEGLIGIBLE = 1e-2
# The search for the penalty only counts nonzeros, for which this gap is small enough.
COARSE = 5e-3
# Up to this relative distance of the penalties one solution is a start for the other.
NEARBY = 0.15
UNSTOPPED = Sweeps()


@dataclass(frozen=True)
class Point:
    """A point is the solved relaxation at one penalty, on the features that survive it."""

    core: np.ndarray  # (m,) features with variance above the penalty, and perhaps some more
    relaxation: Relaxation
    loadings: np.ndarray  # (m,)

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.loadings))


def survivors(cov: Covariance, penalty: float) -> np.ndarray:
    """Return all features whose variance may exceed the penalty, allowing for rounding."""
    slack = SAFETY * (cov.psd_shift + cov.rounding(1)) + 1e-9 * penalty
    return np.flatnonzero(cov.diagonal > penalty - slack)


def solve_at(
    cov: Covariance,
    penalty: float,
    nonnegative: bool,
    gap: float,
    known: Sequence[Point] = (),
    sweeps: Sweeps = UNSTOPPED,
) -> Point:
    """Eliminate, solve the relaxation (from solutions nearby), and read off the loadings."""
    # The certificate stores U in single precision, so the penalty that limits U has to be a single
    # precision number; it is rounded down to stay below the largest variance.
    single = np.float32(penalty)
    penalty = float(single if single <= penalty else np.nextafter(single, np.float32(0.0)))
    core = survivors(cov, penalty)
    A = cov.submatrix(core)
    largest = float(np.diagonal(A).max())
    if largest <= penalty < float(cov.diagonal.max()):
        # After deflation has explained all variance, the submatrix and the stored diagonal hold
        # different rounding errors.
        if largest > 0:
            penalty = float(np.float32(largest / 2))
        else:
            A = np.diag(cov.diagonal[core])
    starts = [_carried(p, core, A, penalty, nonnegative) for p in _neighbours(known, penalty)]
    relaxation = ascend(A, penalty, nonnegative=nonnegative, tol=gap, starts=starts, sweeps=sweeps)
    x = relaxation.direction()
    if nonnegative:
        x = np.maximum(x, 0.0)
    x[np.abs(x) < NEGLIGIBLE * np.abs(x).max()] = 0.0
    return Point(core, relaxation, x)


def _carried(
    near: Point, core: np.ndarray, A: np.ndarray, penalty: float, nonnegative: bool
) -> Start:
    """Return the solution at another penalty, restricted and padded to the features `core`."""
    _, here, there = np.intersect1d(core, near.core, assume_unique=True, return_indices=True)
    Z, dual = np.zeros_like(A), soft_threshold(A, penalty, nonnegative)
    Z[np.ix_(here, here)] = near.relaxation.Z[np.ix_(there, there)]
    dual[np.ix_(here, here)] = near.relaxation.dual[np.ix_(there, there)]
    return Start(Z, dual)


def _neighbours(points: Sequence[Point], penalty: float) -> list[Point]:
    """Return the solutions at the closest penalties below and above, if these are near."""
    if penalty == 0:  # the penalty has underflowed in single precision
        return []
    near = [p for p in points if abs(p.relaxation.penalty / penalty - 1) <= NEARBY]
    below = [p for p in near if p.relaxation.penalty <= penalty]
    above = [p for p in near if p.relaxation.penalty > penalty]
    lower = max(below, key=lambda p: p.relaxation.penalty, default=None)
    upper = min(above, key=lambda p: p.relaxation.penalty, default=None)
    return [p for p in (lower, upper) if p is not None]


def _lowest_penalty(cov: Covariance) -> float:
    """Return the smallest penalty for which no more than CORE_LIMIT features survive."""
    if cov.n_features <= CORE_LIMIT:
        return 0.0
    ranked = np.sort(cov.diagonal)[::-1]
    return float(ranked[CORE_LIMIT]) * (1 + 1e-6)


def search_penalty(
    single: Problem,
    *,
    gap: float,
    cardinality: str,
    max_solves: int,
    sweeps: Sweeps,
) -> list[Point]:
    """Bisect over the penalty and return all points; the last one has the best cardinality."""
    cov, s, nonnegative = single.covariance, single.s_max, single.nonnegative
    largest = float(cov.diagonal.max())
    low, high = _lowest_penalty(cov), largest
    if low >= largest * (1 - 1e-6):
        raise ValueError(
            f"method='dspca' works on at most {CORE_LIMIT} features, but more than that of the "
            f"{cov.n_features} have the largest variance, so that no penalty sets any aside "
            "(standardised columns cannot be screened by variance); select features first, or use "
            "another method"
        )
    slack = 1 if cardinality == "about" else 0
    points: list[Point] = []
    for _ in range(max_solves):
        middle = (low + high) / 2
        point = solve_at(cov, middle, nonnegative, max(gap, COARSE), points, sweeps)
        points.append(point)
        if abs(point.count - s) <= slack:
            return points
        if point.count > s:
            low = point.relaxation.penalty
        else:
            high = point.relaxation.penalty
        if high - low <= 1e-6 * largest or sweeps.stopped:
            break
    # A point with too many nonzeros can be cut to size; one with too few cannot be filled.
    points.sort(key=lambda point: (point.count >= s, -abs(point.count - s)))
    return points


def tighten(
    single: Problem,
    points: list[Point],
    *,
    gap: float,
    solves: int,
    sweeps: Sweeps,
) -> list[Point]:
    """Return more points, at penalties for which phi(l) + l s comes closer to its minimum.

    It is convex in l, and |Z|_1 - s is minus its slope: the bisection finds the change of sign.
    """
    cov, s, nonnegative = single.covariance, single.s_max, single.nonnegative
    norms = {p.relaxation.penalty: float(np.abs(p.relaxation.Z).sum()) for p in points}
    low = max((level for level, norm in norms.items() if norm > s), default=_lowest_penalty(cov))
    high = min((level for level, norm in norms.items() if norm <= s), default=cov.diagonal.max())
    extra: list[Point] = []
    for _ in range(solves):
        if high - low <= 1e-3 * high or sweeps.stopped:
            break
        middle = (low + high) / 2
        point = solve_at(cov, middle, nonnegative, gap, [*points, *extra], sweeps)
        extra.append(point)
        if np.abs(point.relaxation.Z).sum() > s:
            low = point.relaxation.penalty
        else:
            high = point.relaxation.penalty
    return extra


def _component(point: Point, s: int, nonnegative: bool) -> Component:
    """Return the component of the s largest loadings, in the features of the covariance."""
    cut = truncate(point.loadings[:, None], min(s, point.loadings.size), nonnegative)[:, 0]
    part = Component.from_vector(cut)
    return Component(point.core[part.support], part.weights)


def _note(point: Point, s: int, penalty: float | None, unit: float) -> str:
    """Return a note on what fell short; `penalty` is None if it was searched for."""
    notes = []
    level = point.relaxation.penalty * unit
    if point.count > s:
        notes.append(
            f"dspca: {point.count} nonzeros at penalty {level:.4g}, cut to the {s} largest"
        )
    elif point.count < s and penalty is None:
        notes.append(f"dspca: {point.count} of the {s} nonzeros allowed, at penalty {level:.4g}")
    elif point.count < s and penalty is not None:
        notes.append(fewer("dspca", penalty, point.count, s))
    if not point.relaxation.converged:
        notes.append(
            f"dspca: duality gap {100 * point.relaxation.gap:.2g} % after "
            f"{point.relaxation.n_iter} iterations; the bound holds all the same"
        )
    return "; ".join(notes)


def _late(points: list[Point], gap: float) -> str:
    """Return a note on relaxations, solved for the bound only, that missed the gap asked for."""
    open_gaps = [p.relaxation.gap for p in points if not p.relaxation.converged]
    if not open_gaps:
        return ""
    return (
        f"dspca: {len(open_gaps)} of {len(points)} relaxations for the bound stopped above the gap "
        f"of {100 * gap:.2g} % (at {100 * max(open_gaps):.2g} %); the bound holds all the same"
    )


def _estimate(problem: Problem, point: Point) -> float:
    """Return about the bound that `dspca_dual` will give, for choosing among points."""
    w = np.linalg.eigvalsh(point.relaxation.dual)[::-1][: problem.k]
    return float(np.maximum(w, 0.0).sum()) + point.relaxation.penalty * sum(problem.cardinalities)


def run(
    problem: Problem,
    options: Options,
    *,
    penalty: float | None = None,
    gap: float = 1e-3,
    cardinality: str = "exact",
    max_solves: int = 12,
    bound_solves: int = 4,
    deflation: str = "auto",
) -> Found:
    """Search for the penalty of the cardinality, or use `penalty` times the largest variance.

    `cardinality="about"` stops the search one nonzero off, as the paper does; `gap` is the relative
    duality gap to which the relaxations are solved; `bound_solves` more of them tighten the bound.
    """
    check_penalty(penalty)
    if cardinality not in ("exact", "about"):
        raise ValueError(f"cardinality must be 'exact' or 'about', got {cardinality!r}")
    if not 0 < gap < 1:
        raise ValueError(f"gap={gap} must lie strictly between 0 and 1")
    if max_solves < 1:
        raise ValueError(f"max_solves={max_solves} must be at least 1")
    seen: list[Point] = []
    trail: list[dict[str, float]] = []
    sweeps = Sweeps(monitor=options.monitor)

    def solve(single: Problem, rng: np.random.Generator) -> Single:
        cov, s, nonnegative = single.covariance, single.s_max, single.nonnegative
        top = np.array([np.argmax(cov.diagonal)])
        if float(cov.submatrix(top)[0, 0]) <= 0:  # the diagonal alone may keep rounding errors
            return Single(Component(np.zeros(1, dtype=np.intp), np.ones(1)))
        if penalty is not None:
            level = penalty * float(cov.diagonal.max())
            points = [solve_at(cov, level, nonnegative, gap, sweeps=sweeps)]
        else:
            points = search_penalty(
                single, gap=gap, cardinality=cardinality, max_solves=max_solves, sweeps=sweeps
            )
        late = ""
        if not trail:
            extra: list[Point] = []
            if bound_solves and penalty is None:
                extra = tighten(single, points, gap=gap, solves=bound_solves, sweeps=sweeps)
                late = _late(extra, gap)
            seen.extend([*points, *extra])
        trail.extend(_record(point, cov) for point in points)
        chosen = points[-1]
        total = sum(point.relaxation.n_iter for point in points)
        note = "; ".join(filter(None, (_note(chosen, s, penalty, cov.unit), late)))
        return Single(_component(chosen, s, nonnegative), total, note)

    found = deflate(problem, options, solve, deflation=deflation)
    # Only the first component was searched for in the whole covariance, so only its dual solutions
    # give a bound for it.
    bounds: tuple[Bound, ...] = ()
    if seen:
        best = min(seen, key=lambda point: _estimate(problem, point))
        bounds = (dspca_dual(problem, best.core, best.relaxation.dual, best.relaxation.penalty),)
    return Found(
        found.components, found.n_iter, found.note, bounds, {**found.info, "relaxations": trail}
    )


def _record(point: Point, cov: Covariance) -> dict[str, float]:
    """Return the figures of a relaxation in the user's units; they hold for its features only."""
    relaxation = point.relaxation
    return {
        "penalty": relaxation.penalty * cov.unit,
        "survivors": point.core.size,
        "nonzeros": point.count,
        "value": relaxation.value * cov.unit,
        "bound": relaxation.bound * cov.unit,
        "iterations": relaxation.n_iter,
    }


METHOD = Method("dspca", "Zhang & El Ghaoui 2011", run)
