"""method="auto", the default, combines several searches.

All components are searched for at once on a dense working set of promising features; then every
feature of the data is compared with the answer through a few covariance columns, those that could
improve it join the working set, and the search repeats until none is left. The simple methods run
too, and their answers are among the starts, so the result is never below theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...bounds.enumeration import count_supports, exhaust
from ...problem.components import newcomer_gain, refit, refit_one, removals
from ...problem.constraints import Constraints
from ...problem.covariance import Covariance
from ...problem.monitor import Quiet
from ...problem.problem import Component, Options, Problem
from ..joint import JointSearch
from ..method import Found, Method
from ..overlap import Overlap, Tools
from ..shares import best_shares
from . import threshold, tpower

ALL_FEATURES = 1500  # up to so many features, all of them are in the working set
WORKING_SET = 800
NEWCOMERS = 60  # features that may join the working set in one round
ROUNDS = 12
MOST = 1000  # of effort
FEW = 1000  # supports, and packings of them: so many are all tried, which is quicker than a search
JOINT = 3  # factor of the effort for several components: less misses the best on some texts
SIMPLE = (threshold.METHOD, tpower.METHOD)  # their answers are among the starts
NEARLY = 2e-3  # swaps predicted to lose so little are tried too: predictions are first order


def run(problem: Problem, options: Options, *, effort: int = 3) -> Found:
    """Search with `effort` times the standard numbers of starts and perturbations."""
    if effort > MOST:
        raise ValueError(
            f"method_options['effort']={effort} must be at most {MOST}: the time and memory of a "
            "search grow with it (the default is 3)"
        )
    if problem.total is not None:
        return _shared(problem, options, effort)
    if problem.disjoint and not problem.adjusted:
        times = JOINT if problem.k > 1 else 1
        apart, rounds = _disjoint(problem, options, times * effort)
        return Found(apart, n_iter=rounds, info={"effort": effort})
    return Found(_overlapping(problem, options, effort), n_iter=1, info={"effort": effort})


def _overlapping(problem: Problem, options: Options, effort: int) -> tuple[Component, ...]:
    """Search for components that share features, or that count beyond one another."""
    # whichever of them is which: the order in which sizes are given changes nothing
    problem = replace(problem, cardinalities=tuple(sorted(problem.cardinalities, reverse=True)))

    def apart(sizes: tuple[int, ...]) -> tuple[Component, ...]:
        given = Problem(problem.covariance, sizes, problem.nonnegative)
        return _disjoint(given, options, JOINT * effort)[0]

    def one(cov: Covariance, s: int) -> np.ndarray:
        alone = Problem(cov, (s,), problem.nonnegative)
        return _disjoint(alone, options, min(effort, 1))[0][0].support

    simple = [method.run(problem, options).components for method in SIMPLE]
    # without a feature, a component of an earlier answer may be left with none
    whole = [start for start in problem.starts if all(support.size for support in start)]
    simple += [tuple(_weighted(problem, support) for support in start) for start in whole]
    return refit(problem, Overlap(problem, options, Tools(apart, one, simple), effort).best())


def _shared(problem: Problem, options: Options, effort: int) -> Found:
    """Share a total number of nonzeros; every trial of shares is a search at those sizes."""

    def search(supports: Sequence[np.ndarray], thorough: bool) -> list[np.ndarray]:
        sizes = tuple(int(support.size) for support in supports)
        given = replace(problem, cardinalities=sizes, total=None)
        features = _working_set(given)
        if features.size < problem.covariance.n_features:
            features = np.union1d(features, np.concatenate(list(supports)))
        starts = [list(supports)]
        return _search_within(given, options, features, starts, effort if thorough else 0)

    supports = best_shares(problem, search, options.seed, effort)
    components = tuple(_weighted(problem, support) for support in supports)
    return Found(components, n_iter=1, info={"effort": effort})


def _disjoint(problem: Problem, options: Options, effort: int) -> tuple[tuple[Component, ...], int]:
    cov = problem.covariance
    if effort and problem.k > 1 and count_supports(problem) <= FEW:
        every, proof, _ = exhaust(problem, options, FEW)
        if proof is not None and len(every) == problem.k:
            return every, 1
    given = [list(supports) for supports in problem.starts]
    features = np.unique(np.concatenate([_working_set(problem), *itertools.chain(*given)]))
    simple = _simple_answers(problem, options, features)
    supports = _search_within(problem, options, features, [*given, *simple], effort)
    rounds = 1
    while features.size < cov.n_features and rounds < ROUNDS and not options.monitor.stopped:
        new = _newcomers(problem, supports, features)
        if new.size == 0:
            break
        features = np.union1d(features, new)
        before = supports
        supports = _search_within(problem, options, features, [before], 0)
        rounds += 1
        if all(map(np.array_equal, before, supports)):
            break
    supports = _without_empty(supports, cov)
    components = tuple(_weighted(problem, support) for support in supports)
    return components, rounds


def _simple_answers(
    problem: Problem, options: Options, features: np.ndarray
) -> list[list[np.ndarray]]:
    """Return supports among the features, found by thresholding and the truncated power method."""
    if problem.k == 1:
        return []  # joint_search itself starts from these
    if features.size < problem.covariance.n_features:
        inside = problem.covariance.restrict(features).materialise()
        problem = replace(problem, covariance=inside)
    problem = replace(problem, constraints=Constraints())  # the search moves anchors in
    quiet = replace(options, monitor=Quiet(options.monitor))
    found = [method.run(problem, quiet) for method in SIMPLE]
    return [[features[component.support] for component in answer.components] for answer in found]


def _working_set(problem: Problem) -> np.ndarray:
    """Return the features of large variance or with a large part in the leading subspace."""
    cov = problem.covariance
    p = cov.n_features
    if p <= ALL_FEATURES:
        return np.arange(p)
    size = max(WORKING_SET, 4 * sum(problem.cardinalities))
    block = np.random.default_rng(0).standard_normal((p, min(p, 2 * problem.k + 4)))
    for _ in range(3):
        block = np.linalg.qr(cov.matmat(block))[0]
    image = cov.matmat(block)
    by_variance = np.argsort(-cov.diagonal, kind="stable")[: size // 2]
    by_loading = np.argsort(-np.square(image).sum(axis=1), kind="stable")[: size // 2]
    anchors = np.array([f for own in problem.include for f in own], dtype=np.intp)
    return np.union1d(np.union1d(by_variance, by_loading), anchors)


def _search_within(
    problem: Problem,
    options: Options,
    features: np.ndarray,
    starts: list[list[np.ndarray]],
    effort: int,
) -> list[np.ndarray]:
    cov = problem.covariance
    whole = features.size == cov.n_features
    A = cov.dense() if whole else cov.submatrix(features)
    short = sum(problem.cardinalities) - features.size
    if short > 0:  # zero rows stand for places that no feature fills
        A = np.pad(A, (0, short))
    local = [[np.searchsorted(features, support) for support in start] for start in starts]
    anchors = [np.searchsorted(features, list(own)).tolist() for own in problem.include]
    search = JointSearch(A, problem.cardinalities, problem.nonnegative, options, anchors)
    found = search.run(effort, local)
    return [features[support[support < features.size]] for support in found]


def _newcomers(
    problem: Problem, supports: Sequence[np.ndarray], features: np.ndarray
) -> np.ndarray:
    """Return features outside the working set whose exchange for a member promises a gain."""
    cov = problem.covariance
    score = np.full(cov.n_features, -np.inf)
    for support in supports:
        if support.size == 0:
            continue
        component = _weighted(problem, support)
        columns = cov.columns(component.support)
        block = columns[component.support]
        value = float(component.weights @ block @ component.weights)
        vectors, values = removals(block, component.weights, problem.nonnegative)
        cross = columns @ vectors.T  # (p, s)
        gains = newcomer_gain(values, cov.diagonal[:, None], cross, problem.nonnegative)
        predicted = values + gains
        score = np.maximum(score, predicted.max(axis=1) - (1.0 - NEARLY) * value)
    score[features] = -np.inf
    best = np.argsort(-score, kind="stable")[:NEWCOMERS]
    return best[score[best] > 0.0]


def _weighted(problem: Problem, support: np.ndarray) -> Component:
    return refit_one(problem.covariance, Component.even(support), problem.nonnegative)


def _without_empty(supports: list[np.ndarray], cov: Covariance) -> list[np.ndarray]:
    """Give every component without features one feature of the largest component."""
    supports = list(supports)
    for j, support in enumerate(supports):
        if support.size == 0:
            donor = int(np.argmax([other.size for other in supports]))
            least = int(np.argmin(cov.diagonal[supports[donor]]))
            supports[j] = supports[donor][[least]]
            supports[donor] = np.delete(supports[donor], least)
    return supports


METHOD = Method(
    "auto",
    "portfolio: matching ascent, exchange search, perturbations",
    run,
    shares_totals=True,
    takes_starts=True,
    anchors=True,
    anchors_several=True,
)
