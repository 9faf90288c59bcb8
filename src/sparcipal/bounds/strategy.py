"""Chooses which proofs to try for a problem, in the order of their cost."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..numerics.margins import SAFETY
from ..problem.components import refit, variances
from ..problem.constraints import Constraints
from ..problem.covariance import DENSE_LIMIT
from ..problem.monitor import Aside, Meter
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .adjusted import adjusted_bound, ridge_bound
from .cheap import cheap_bounds, trace_bound
from .common import common_bound
from .ellipsoid import ellipsoid_bound
from .joint import prove_jointly
from .kyfan import JointQuestion, kyfan_bound
from .lowrank.bound import low_rank_bound, low_rank_work
from .orthogonal import orthogonal_bound
from .parts import sum_of_parts
from .proved import Proved
from .tree.core import EASY as MANY
from .tree.core import ROUGH, ROUGH_FROM, WORK, affordable, prove_large
from .tree.question import TreeQuestion
from .tree.search import prove as prove_tree

# Bounds that are tried after the cheap ones, in this order: functions of a problem that return a
# bound, or None where there is none.
NEXT = (
    "cheap.eigenvalue_bound",
)  # fmt: skip
# A proof aims at this share of the tolerance, which leaves room for rounding margins.
TIGHTER = 0.9
# Up to this many features the branch and bound works on all of them, beyond that on a core.
WHOLE = 400
# Relative gap above which ellipsoids and the low-rank bound are tried as well, and how many cones
# the latter may take; up to SKETCHED samples it comes first.
WIDE = 0.02
SKETCHED = 7
HARDLY = 0.5  # gap above which hardly anything is proved of one component
ROOT_ONLY = 0.1  # of the work of a tree, which is hardly more than its root
CONES = {"fast": 20_000, "full": 200_000}
SKETCHES, COVERS = 4, 6  # matrices that they hold, of the size of the covariance and of the table
NEARLY = 0.8  # of its work, what must be left for the low-rank bound


def prove(
    problem: Problem,
    components: tuple[Component, ...],
    known: tuple[Bound, ...],
    options: Options,
    certify: Any,
    start: Any = None,
) -> Proved:
    """Try bounds in the order of their cost until the gap closes; `known` came from the search,
    and `start` is `again` of a neighbouring problem, or for several components the Ky Fan bound of
    one."""
    options = replace(options, meter=Meter(WORK if certify == "fast" else np.inf))
    if start is not None and certify and problem.k == 1:
        # a certificate that nearly fits costs less than the cheap bounds
        trace = trace_bound(problem)
        near = _prove_one(problem, Proved(components, (*known, trace)), options, certify, start)
        if _closed(problem, near, options):
            return near
        others = (bound for bound in near.bounds if bound is not trace)
        near = replace(near, bounds=(*others, *cheap_bounds(problem, clip=False)))
        return _where_wide(problem, near, options, certify)
    if certify is False and problem.disjoint and _close_enough(problem, components, known):
        return Proved(components, (*known, trace_bound(problem)))
    # the tree of one component begins with the best of several clippings
    treeless = certify is False or problem.k > 1
    proved = Proved(components, (*known, *cheap_bounds(problem, clip=treeless)))
    if certify is False or _closed(problem, proved, options):
        return proved
    for name in NEXT:
        found = _function(name)(problem)
        if found is not None:
            proved = replace(proved, bounds=(*proved.bounds, found))
    if _closed(problem, proved, options) or (problem.k == 1 and options.monitor.stopped):
        return proved
    if problem.adjusted or not problem.disjoint:
        return _prove_overlapping(problem, proved, options, certify)
    if problem.k > 1:
        proved = prove_jointly(problem, proved, options, certify, start)
        stopped = options.monitor.stopped is not None
        if problem.include and not (_closed(problem, proved, options) or stopped):
            # a joint bound does not know of anchors, bounds of single components do
            proved, _ = _prove_parts(problem, proved, options, certify)
        return _where_wide(problem, proved, options, certify)
    early = _early(problem)
    extra = early and early(problem, proved, options, certify)
    if extra is not None:
        proved = replace(proved, bounds=(*proved.bounds, extra))
    if not (
        _closed(problem, proved, options)
        # bounds for few samples cover many nonzeros at once, which is cheaper than a large core
        or (problem.covariance.n_features > WHOLE and not affordable(problem.s_max, certify))
    ):
        proved = _prove_one(problem, proved, options, certify)
    if extra is not None and extra.value > min(bound.value for bound in proved.bounds):
        proved = replace(proved, bounds=tuple(b for b in proved.bounds if b is not extra))
    return _where_wide(problem, proved, options, certify, early)


def _function(name: str) -> Callable[[Problem], Bound | None]:
    """Import a function of this package by its file and its name."""
    module, _, attribute = name.partition(".")
    found: Callable[[Problem], Bound | None] = getattr(
        importlib.import_module(f".{module}", __package__), attribute
    )
    return found


def _closed(problem: Problem, proved: Proved, options: Options) -> bool:
    value = float(variances(problem, proved.components).sum())
    bound = min(b.value for b in proved.bounds)
    options.monitor.update("bounds", value=value, bound=bound)
    return bound <= value * (1 + max(options.tol, options.aim))


def _close_enough(
    problem: Problem, components: tuple[Component, ...], known: tuple[Bound, ...]
) -> bool:
    """Return whether cheap bounds are not worth their time beside those that are known."""
    value = float(variances(problem, components).sum())
    return min((b.value for b in known), default=np.inf) <= (1 + WIDE) * value


Attempt = Callable[[Problem, Proved, Options, str], Bound | None]


def _early(problem: Problem) -> Attempt | None:
    """Return the bound for few samples that is tried before the core of many nonzeros."""
    if problem.covariance.n_features <= WHOLE or problem.s_max <= MANY:
        return None
    if _sketched(problem):
        return _low_rank
    return _ellipsoid if problem.s_max > ROUGH_FROM else None


def _where_wide(
    problem: Problem, proved: Proved, options: Options, certify: str, done: Attempt | None = None
) -> Proved:
    """Where the gap is wide, add the ellipsoid or low-rank bound if it is better."""
    value = float(variances(problem, proved.components).sum())
    lowest, best = min(bound.value for bound in proved.bounds), None
    order = [_low_rank, _ellipsoid] if _sketched(problem) else [_ellipsoid, _low_rank]
    if problem.k == 1 and problem.total is None and not problem.include:
        order.append(_ky_fan)
    for attempt in order:
        if attempt is done:
            continue
        if lowest <= value * (1 + max(WIDE, options.tol)) or options.monitor.stopped is not None:
            break
        found = attempt(problem, proved, options, certify)
        if found is not None and found.value < lowest:
            lowest, best = found.value, found
            options.monitor.update("bounds", value=value, bound=lowest)
    # their data are large, so only one is kept, and only if it is the best bound
    return proved if best is None else replace(proved, bounds=(*proved.bounds, best))


def _sketched(problem: Problem) -> bool:
    """Return whether samples are so few that a sketch is exact."""
    return (problem.covariance.n_samples or np.inf) <= SKETCHED


def _ellipsoid(problem: Problem, proved: Proved, options: Options, certify: str) -> Bound | None:
    size = 8.0 * (problem.covariance.n_samples or 0) * problem.covariance.n_features
    if problem.total is not None or COVERS * size > options.room:
        return None
    value, known = proved.value(problem), min(bound.value for bound in proved.bounds)
    # a bound before the core is worth its time if it is lower than the level aimed at there
    below = min(known, value * (1 + ROUGH)) if problem.s_max > ROUGH_FROM else known
    # what the low-rank bound needs is left to it
    left = options.meter.left
    spare = left - low_rank_work(problem.covariance.n_features)
    most = spare if spare > 0.0 else left
    return ellipsoid_bound(problem, proved.components, options, certify, below, most)


def _ky_fan(problem: Problem, proved: Proved, options: Options, certify: str) -> Bound | None:
    """Bound one component as several are, with the rows of all features that stand in the way: for
    tables of thousands of features that are alike, of which no core is small enough."""
    value = proved.value(problem)
    if min(bound.value for bound in proved.bounds) <= value * (1 + HARDLY):
        return None
    supports = [component.support for component in proved.components]
    question = JointQuestion(
        problem.covariance, problem.cardinalities, supports, value,
        nonnegative=problem.nonnegative, tol=options.tol, room=options.room,
    )  # fmt: skip
    return kyfan_bound(question, effort="rough", monitor=options.monitor)


def _low_rank(problem: Problem, proved: Proved, options: Options, certify: str) -> Bound | None:
    known = min(bound.value for bound in proved.bounds)
    work = low_rank_work(problem.covariance.n_features)
    p = problem.covariance.n_features
    formed = SKETCHES * 8.0 * p**2 if p <= DENSE_LIMIT else 0.0
    if NEARLY * work > options.meter.left or formed > options.room:
        return None
    options.meter.spend(work)
    return low_rank_bound(problem, options, max_cones=CONES[certify], known=known)


def _prove_one(
    problem: Problem, proved: Proved, options: Options, certify: str, start: Any = None
) -> Proved:
    """Branch and bound on the pair-split bound; it may find a better component on the way."""
    covariance, s = problem.covariance, problem.cardinalities[0]
    component = proved.components[0]
    value = float(variances(problem, proved.components)[0])
    # a tree counts its tolerance in the largest variance, which anchors may keep out of reach
    largest = float(covariance.diagonal.max())
    share = min(1.0, value / largest) if problem.include and value > 0.0 else 1.0
    question = TreeQuestion(
        nonnegative=problem.nonnegative,
        incumbent=(component.support, value),
        tol=TIGHTER * max(options.tol, options.aim) * share,
        max_nodes=options.max_nodes,
        monitor=options.monitor,
        effort=certify,
        start=start,
        forced=problem.forced,
        known=min(bound.value for bound in proved.bounds),
        limit=options.meter.left,
        # where a gap may stay open, branching costs more than it is worth
        share=ROOT_ONLY if options.aim > options.tol else 1.0,
        n_jobs=options.n_jobs,
    )
    if covariance.n_features <= WHOLE:
        proof = prove_tree(covariance.dense(), s, question)
    else:
        proof = prove_large(covariance, s, question)
    options.meter.spend(proof.work)
    limited = options.max_nodes is not None and proof.nodes >= options.max_nodes
    margin = SAFETY * covariance.rounding(s)
    bound = Bound("tree", proof.bound + margin, proof.data(), margin)
    best = proved.components
    if proof.value > value:
        found = (Component(proof.support, np.ones(proof.support.size)),)
        better = refit(problem, found)
        if float(variances(problem, better)[0]) > value:
            best = better
    return Proved(
        best,
        (*proved.bounds, bound),
        nodes=proof.nodes,
        eliminated=proof.eliminated,
        out_of_nodes=proof.status == "nodes" and limited,
        again=proof.again,
    )


def _prove_overlapping(problem: Problem, proved: Proved, options: Options, certify: str) -> Proved:
    """Prove components that share features, or that count beyond one another."""
    if problem.disjoint:
        proved = prove_jointly(problem, proved, options, certify)
    proved, parts = _prove_parts(problem, proved, options, certify)
    if problem.adjusted and not _closed(problem, proved, options):
        # A + cI in place of the covariance: any number of features, and exact at low rank
        found = ridge_bound(problem, parts)
        proved = proved if found is None else replace(proved, bounds=(*proved.bounds, found))
    # the short effort comes first, so that the long one never proves less
    for effort in ("fast", "full") if certify == "full" else (certify,):
        if _closed(problem, proved, options) or options.monitor.stopped is not None:
            break
        proved = _prove_kind(problem, proved, options, effort)
    return proved


def _prove_kind(problem: Problem, proved: Proved, options: Options, effort: str) -> Proved:
    """Add the bound of this kind of components."""
    few = problem.covariance.n_features <= WHOLE
    if problem.adjusted:
        known = min(bound.value for bound in proved.bounds)
        found = adjusted_bound(problem, proved.components, known, options, effort)
        proved = proved if found is None else replace(proved, bounds=(*proved.bounds, found))
    elif problem.orthogonal and not few:
        supports = [c.support for c in proved.components]
        question = JointQuestion(
            problem.covariance, problem.cardinalities, supports, proved.value(problem),
            tol=options.tol, overlapping=True, room=options.room,
        )  # fmt: skip
        plan = {"fast": "wide", "full": "full"}[effort]
        bound = kyfan_bound(question, effort=plan, monitor=options.monitor)
        proved = replace(proved, bounds=(*proved.bounds, bound))
    elif problem.orthogonal:
        value = proved.value(problem)
        bound = orthogonal_bound(problem, proved.components, value, options, effort)
        proved = replace(proved, bounds=(*proved.bounds, bound))
    elif problem.common:
        value = proved.value(problem)
        bound, better, nodes = common_bound(problem, proved, options, effort)
        proved = replace(proved, bounds=(*proved.bounds, bound), nodes=proved.nodes + nodes)
        if replace(proved, components=better).value(problem) > value:
            proved = replace(proved, components=better)
    return proved


def _prove_parts(
    problem: Problem, proved: Proved, options: Options, certify: str
) -> tuple[Proved, dict[int, Bound]]:
    """Bound each component alone and add the bounds; also return the bound of each size."""
    anchors = problem.include or ((),) * problem.k
    asked = list(zip(problem.cardinalities, anchors))
    parts: dict[tuple[int, tuple[int, ...]], Bound] = {}
    nodes, aside = proved.nodes, replace(options, monitor=Aside(options.monitor))
    for s, own in sorted(set(asked)):
        constraints = Constraints((own,) if own else ())
        alone = Problem(problem.covariance, (s,), problem.nonnegative, constraints=constraints)
        known = proved.components[asked.index((s, own)) if problem.include else 0]
        first = refit(alone, _shortened(known, s))
        one = prove(alone, first, (), aside, certify)
        parts[s, own] = min(one.bounds, key=lambda bound: bound.value)
        nodes += one.nodes
    total = sum_of_parts([parts[part] for part in asked], problem.cardinalities)
    proved = replace(proved, bounds=(*proved.bounds, total), nodes=nodes)
    return proved, {s: bound for (s, _), bound in parts.items()}


def _shortened(component: Component, s: int) -> tuple[Component, ...]:
    order = np.argsort(-np.abs(component.weights), kind="stable")[:s]
    keep = np.sort(order)
    return (Component(component.support[keep], component.weights[keep]),)
