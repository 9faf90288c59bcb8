"""The plan for several components with disjoint supports: which bounds, in which order, how long.

A step of the plan asks one bound, with what the steps before it found. The order is that in which
the gap closed soonest on correlation matrices and texts: a short Ky Fan bound gives prices from
which branch and bound often proves the optimum. A longer Ky Fan bound pays before more branching
does, so that `full` takes it first. A second step at prices begins with what the first one met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..problem.components import refit
from ..problem.problem import Options, Problem
from ..problem.result import Bound
from .configuration.bound import MOST_CORE, configuration_bound
from .dropped import PAD, ROUGH
from .enumeration import count_supports, exhaust
from .kyfan import EFFORTS, SMALL, JointAnswer, JointQuestion, kyfan_bound
from .labels import labels_bound
from .proved import Proved

# Up to this many supports are enumerated, by the effort that the user asked for.
EXHAUSTIBLE = {"fast": 20_000, "full": 500_000}
# An enumeration may look at this many packings and read this many entries of support tables; beyond
# that other bounds are cheaper.
PACKINGS = {"fast": 100_000, "full": 1_000_000}
READS = {"fast": 2e9, "full": 4e10}
FEW = 20  # nonzeros up to which branch and bound at prices often closes the gap
# The account of the default where every feature is in the core: about nanoseconds of one core, by
# count, for all steps. Branch and bound at prices gets what is left, which counts less than it
# takes. Finding prices takes PRICING for each feature and nonzero where the gap is HOPELESS, and
# less where it is smaller.
WORK = 8.5e9
BRANCHING = (2e8, 4e9)  # work: less is not worth finding prices for, more rarely closes a gap
UNCOUNTED = 1.7
PRICING = 3e5
HOPELESS = 0.01
HASTY = 240  # nonzeros in all up to which a Ky Fan bound after a stop takes a moment


@dataclass(frozen=True)
class Stage:
    """What a step may rely on: the question, the bounds so far, and how the user limits a run."""

    question: JointQuestion
    bounds: tuple[Bound, ...]
    options: Options
    dropped: float  # the largest variance of a feature that was screened out
    start: Bound | None = None  # the Ky Fan split of a neighbouring question, as a bound
    again: Any = None  # what prices may begin with

    def last(self, name: str) -> Bound | None:
        """Return the lowest bound of this name."""
        named = [bound for bound in self.bounds if bound.name == name]
        return min(named, key=lambda bound: bound.value, default=None)


@dataclass(frozen=True)
class Step:
    """One bound of the plan: "prices", "labels", or a Ky Fan bound by the name of its effort.

    Prices may take so much `work`, or without it what the account of the default leaves. A `resort`
    is taken only where the gap is larger than the default is content with.
    """

    name: str
    work: float | None = None
    resort: bool = False


def prove_jointly(
    problem: Problem,
    proved: Proved,
    options: Options,
    certify: str,
    start: Bound | None = None,
) -> Proved:
    """Enumerate all packings where they are few, otherwise follow the plan.

    `start` is a Ky Fan bound of a neighbouring question, which takes the place of the first steps.
    """
    count = count_supports(problem)
    if problem.total is None and count <= EXHAUSTIBLE[certify]:
        value = proved.value(problem)
        most = min(PACKINGS[certify], int(READS[certify] / count / problem.covariance.n_features))
        found, bound, _ = exhaust(problem, options, most, known=value)
        better = replace(proved, components=refit(problem, found)) if found else proved
        if better.value(problem) > value:
            proved = better
        if bound is not None:
            return replace(proved, bounds=(*proved.bounds, bound))
    steps = plan(problem, certify)
    if steps[0].name == "full" and options.monitor.limited:
        # a clock may stop the first long step before it proves much: the default plan goes first
        steps = [step for step in plan(problem, "fast") if step.name != "rough"] + steps
    if options.monitor.stopped:
        # the cheap bounds hold; a split that is not optimised does better where the core is small
        steps = [Step("rough")] if problem.n_nonzero <= HASTY else []
    elif start is not None:
        steps = [Step("again"), *(step for step in steps[1:2] if step.name == "prices")]
    return _followed(problem, proved, options, steps, start)


def _followed(
    problem: Problem,
    proved: Proved,
    options: Options,
    steps: list[Step],
    start: Bound | None = None,
) -> Proved:
    """Take these steps until the gap closes."""
    again = None
    for step in steps:
        content = proved.value(problem) * (1 + max(options.tol, ROUGH))
        if step.resort and proved.lowest <= content:
            continue
        asked = _question(problem, proved, options)
        stage = Stage(asked, proved.bounds, options, problem.dropped, start, again)
        options.monitor.update("bounds", message=_GOING_ON.get(step.name, "Ky Fan bound"))
        answer = _answer(step, stage)
        if answer is not None:
            if answer.bound is not None:
                proved = replace(proved, bounds=(*proved.bounds, answer.bound))
            proved = proved.with_supports(problem, answer.supports)
            again = answer.again or again
        value = proved.value(problem)
        options.monitor.update("bounds", value=value, bound=proved.lowest)
        if proved.lowest <= value * (1 + options.tol) or options.monitor.stopped:
            break
    return proved


def prove_better(problem: Problem, proved: Proved, options: Options, certify: str) -> Proved:
    """Branch again at prices, for a value that was found after the plan came to its end."""
    kyfan = [bound for bound in proved.bounds if bound.name == "kyfan"]
    if not kyfan or options.monitor.stopped:
        return proved
    steps = [step for step in plan(problem, certify) if step.name == "prices"]
    return _followed(problem, proved, options, steps)


def plan(problem: Problem, certify: str) -> list[Step]:
    """Return the steps for a problem of this size."""
    small = problem.covariance.n_features <= SMALL
    if certify == "fast" and small:
        # with many nonzeros more steps pay, branching does not
        steps = [Step("short"), Step("prices")] if problem.s_max <= FEW else [Step("many")]
        if problem.dropped > 0.0 and problem.s_max <= FEW:
            steps.append(Step("many", resort=True))
    elif certify == "fast":
        wide = Step("wide", resort=problem.dropped > 0.0)
        steps = [Step("rough"), wide] if wide.resort else [wide]
    elif small and problem.s_max <= FEW:
        # the longer split costs less than branching at the prices of the short one
        steps = [Step("short"), Step("longer"), Step("prices", 1e11), Step("labels")]
    elif problem.covariance.n_features <= MOST_CORE:
        # prices close most where every feature is in the core; labels go on from there
        steps = [Step("full"), Step("prices", 3e11), Step("labels"), Step("prices", 1e12)]
    else:
        steps = [Step("full"), Step("labels"), Step("prices", 1e11)]
    # Prices and labels close a gap in the sum of variances, which an adjusted variance does not
    # reach; labels know nothing of anchors, and would look for a proof that does not exist.
    plain = problem.total is None and not problem.adjusted
    useless = set() if plain else {"prices", "labels"}
    if problem.include:
        useless.add("labels")
    return [step for step in steps if step.name not in useless]


def _answer(step: Step, stage: Stage) -> JointAnswer | None:
    if step.name in EFFORTS:
        return JointAnswer(_kyfan(step.name, stage))
    start, monitor = stage.last("kyfan"), stage.options.monitor
    if start is None:
        return None
    if step.name == "labels":
        bound = labels_bound(stage.question, start, monitor=monitor)
        return None if bound is None else JointAnswer(bound)
    work = _left(stage.question, start) if step.work is None else step.work
    if work <= BRANCHING[0]:
        return None
    n_jobs = stage.options.n_jobs
    return configuration_bound(
        stage.question, start, again=stage.again, work=work, monitor=monitor, n_jobs=n_jobs
    )


def _kyfan(effort: str, stage: Stage) -> Bound:
    question, pad = stage.question, 1.001 * stage.dropped  # room for single precision
    each = question.value / (question.total or sum(question.cardinalities))
    if pad > each:
        # No price can keep features away that vary more than a nonzero is worth on average; their
        # covariances may (bounds/dropped.py), and are charged at a pad of the usual size.
        pad = PAD * each
    if effort == "rough":
        # a little less than is enough, since features that were dropped may add to it
        question = replace(question, tol=max(question.tol, ROUGH * 2 / 3))
    start = {"longer": stage.last("kyfan"), "again": stage.start}.get(effort)
    monitor = stage.options.monitor
    return kyfan_bound(question, effort=effort, least_pad=pad, start=start, monitor=monitor)


def _left(question: JointQuestion, start: Bound) -> float:
    """Return what the account of the default leaves for branch and bound at prices."""
    n, gap = len(start.data["features"]), start.value / question.value - 1.0
    spent = EFFORTS["short"].most_work(n, len(question.cardinalities))
    spent += PRICING * n * sum(question.cardinalities) * min(gap / HOPELESS, 1.0)
    return min((WORK - spent) / UNCOUNTED, BRANCHING[1])


# What is said of a step while it takes place.
_GOING_ON = {"prices": "prices", "labels": "components told apart by labels"}


def _question(problem: Problem, proved: Proved, options: Options) -> JointQuestion:
    """Return what joint bounds are asked, with the best components so far."""
    return JointQuestion(
        problem.covariance,
        problem.cardinalities,
        supports=[component.support for component in proved.components],
        value=proved.value(problem),
        nonnegative=problem.nonnegative,
        tol=options.tol,
        total=problem.total,
        include=problem.include,
        room=options.room,
    )
