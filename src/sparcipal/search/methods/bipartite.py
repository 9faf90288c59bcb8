"""SPCABiPart (Asteris, Papailiopoulos, Kyrillidis & Dimakis 2015) finds k disjoint components.

For A_r = VV' (p x r), max_X sum_j x_j'A_r x_j = max_C max_X sum_j <x_j, V c_j>^2 over unit columns
c_j, and for fixed C the best supports are a maximum weight matching with weights (VC)^2. C runs
over random points, or over a net of the product of spheres.

promises.py computes the guarantees of the paper. Beyond the paper, prices and a search on the
sphere bound the optimum of A_r, see bounds/lowrank/prices.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...bounds.cheap import trace_bound
from ...bounds.lowrank.bound import proof_data, rounding_on
from ...bounds.lowrank.prices import leading_direction, priced_sphere
from ...bounds.lowrank.sphere import MAX_RANK
from ...numerics import margins
from ...numerics.margins import SAFETY
from ...numerics.threads import ordered_map
from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ...problem.result import Bound
from ...problem.sketch import Sketch
from ...problem.sketch import sketch as make_sketch
from .. import promises
from ..assign import assign, dual_bound
from ..method import Found, Method
from ..shares import shared_assignment

DEFAULT_RANK = 5  # Asteris et al. take 4 and 5
NET_LIMIT = 2_000_000  # matchings; more would take the better part of an hour
SAMPLES = 4096
BATCH = 64  # points that share one product with V
WAVE = 8  # batches between two updates of the skip level, whatever n_jobs
MEMORY = 8_000_000  # weights held at a time
KEPT = 24  # supports that are scored on the full matrix
ASCENTS = 30  # steps of the matching ascent on the sketch


def run(
    problem: Problem,
    options: Options,
    *,
    points: str = "random",
    eps: float = 0.5,
    max_samples: int = SAMPLES,
    sketch: str = "eigen",
    ascent: bool = True,
    bound: bool = True,
    error_term: bool = False,
) -> Found:
    """Match random points or a net, on a sketch ("eigen", "randomized", "gaussian" or "frequent").

    With `ascent`, the best points are improved: c_j becomes the leading direction of its support
    as long as the value on the sketch grows. A net that is as fine would have far too many points;
    without `ascent` only the points themselves are matched.

    With `bound`, an upper bound on the optimum of the sketch is proved, too. With `error_term`, the
    error of Theorem 2 is: the largest s-sparse eigenvalue of what the sketch misses.
    """
    _check(problem, points, eps, max_samples)
    rank = options.rank or min(DEFAULT_RANK, problem.covariance.n_features)
    low = make_sketch(problem.covariance, rank, kind=sketch, seed=options.seed)
    matcher = Matcher(low.V, problem.cardinalities, problem.nonnegative, problem.total)
    size = net_size(low.rank, problem.cardinalities, eps, problem.nonnegative)
    if points == "net":
        if size > NET_LIMIT:
            raise ValueError(
                f"points='net' with eps={eps} at rank={low.rank} and {problem.k} components has "
                f"about 10^{math.log10(size):.0f} points, the limit is {NET_LIMIT:,}; "
                "raise eps, lower the rank, or use points='random'"
            )
        options.monitor.update("bipartite", message=f"net of {size:,} points")
        blocks = _net_blocks(low.rank, problem, eps)
        total = size
    else:
        blocks = _random_blocks(low.rank, problem.k, max_samples, options.seed)
        total = max_samples
    pool = _collect(matcher, blocks, options, total)
    if ascent and problem.total is None:
        _ascend(matcher, pool)
    supports = pool.best_on(problem.covariance)
    components = tuple(_component(low.V, support, problem.nonnegative) for support in supports)
    unit = problem.covariance.unit
    info: dict[str, Any] = {
        "rank": low.rank,
        "sketch": sketch,
        "points": points,
        "net_size": size,
        "samples": pool.seen,
        "improvements": pool.matched,
        "rank_value": pool.value * unit,
        "tail": low.tail * unit,
    }
    error = low.tail
    if error_term:
        at_least, error = promises.error_term(problem, low, options)
        info["error_term"] = {"at_least": at_least * unit, "at_most": error * unit}
    matched = promises.Matched(points, pool.seen, pool.level)
    info |= promises.guarantees(problem, low, eps, matched, error)
    bounds: tuple[Bound, ...] = ()
    if bound and problem.total is None and low.rank <= MAX_RANK:
        at_most, bounds = _proved(problem, options, low, matcher, pool)
        known = info.get("rank_optimum_at_most", np.inf)
        info["rank_optimum_at_most"] = min(known, at_most * unit)
    return Found(components, n_iter=pool.seen, note=low.note, bounds=bounds, info=info)


def _check(problem: Problem, points: str, eps: float, max_samples: int) -> None:
    if points not in ("random", "net"):
        raise ValueError(f"points must be 'random' or 'net', got {points!r}")
    if not 0.0 < eps < 1.0:
        raise ValueError(f"eps={eps} must lie between 0 and 1; the answer is within 1 - eps")
    if max_samples < 1:
        raise ValueError(f"max_samples={max_samples} must be at least 1")
    if not problem.disjoint and problem.k > 1:
        raise ValueError("method='bipartite' is for supports='disjoint'; use method='auto'")


# one point: its matching -----------------------------------------------------------------------


class Matcher:
    """A matcher matches points C to rows of V, sorted by norm so that most need no look."""

    def __init__(
        self,
        V: np.ndarray,
        cardinalities: tuple[int, ...],
        nonnegative: bool,
        total: int | None = None,
    ) -> None:
        self.need = np.array(cardinalities, dtype=np.int64)
        self.total = total
        self.wanted = int(self.need.sum()) if total is None else total
        short = max(0, self.wanted - V.shape[0])
        norms = np.einsum("ij,ij->i", V, V)
        self.order = np.argsort(-norms, kind="stable")
        self.rows = np.pad(V[self.order], ((0, short), (0, 0)))
        self.norms = np.append(np.pad(norms[self.order], (0, short)), 0.0)
        self.n_features = V.shape[0]
        self.nonnegative = nonnegative
        self.first = min(self.rows.shape[0], max(256, 2 * self.wanted))

    def weights(self, C: np.ndarray) -> np.ndarray:
        """Return the squared scores of all rows that can be among the best, (m, k, rows).

        Rows are sorted by norm: once a norm is below the weight that every column still needs, no
        later row can enter.
        """
        m, r, k = C.shape
        count = self.first
        flat = np.ascontiguousarray(C.transpose(0, 2, 1).reshape(m * k, r))
        wanted = self.wanted
        while True:
            score = flat @ self.rows[:count].T
            if self.nonnegative:
                np.maximum(score, 0.0, out=score)
            np.square(score, out=score)
            if count == self.rows.shape[0]:
                break
            least = np.partition(score, count - wanted, axis=1)[:, count - wanted].min()
            if self.norms[count] <= least:
                break
            count = min(self.rows.shape[0], 2 * count)
        return score.reshape(m, k, count)

    def supports(self, owner: np.ndarray) -> list[np.ndarray]:
        members = [np.flatnonzero(owner == j) for j in range(self.need.size)]
        return [np.sort(self.order[rows[rows < self.n_features]]) for rows in members]

    def rank_value(self, owner: np.ndarray) -> float:
        """Return the value on the sketch: sum_j lambda_max(V_I V_I'), or less with x >= 0."""
        total = 0.0
        for j in range(self.need.size):
            part = self.rows[: owner.size][owner == j]
            if self.nonnegative:
                total += _positive_value(part)
            else:
                total += float(np.linalg.eigvalsh(part.T @ part)[-1])
        return total


def _positive_value(part: np.ndarray) -> float:
    """Return x'VV'x after some steps x = max(Vc, 0), c = V'x, none of which lowers it."""
    best, lead = 0.0, leading_direction(part)
    for c in (lead, -lead):
        for _ in range(20):
            x = np.maximum(part @ c, 0.0)
            size = float(np.linalg.norm(x))
            if size == 0.0:
                break
            image = part.T @ (x / size)
            best = max(best, float(image @ image))
            c = image / max(float(np.linalg.norm(image)), 1e-300)
    return best


@dataclass
class Pool:
    """A pool keeps the best matchings so far; a new one must exceed `level` to be computed."""

    level: float = -np.inf
    value: float = -np.inf
    seen: int = 0
    matched: int = 0

    def __post_init__(self) -> None:
        self.entries: dict[bytes, tuple[float, list[np.ndarray]]] = {}

    def add(self, matching: float, value: float, supports: list[np.ndarray]) -> None:
        self.level = max(self.level, matching)
        self.keep(value, supports)

    def keep(self, value: float, supports: list[np.ndarray]) -> None:
        self.value = max(self.value, value)
        key = b"|".join(support.tobytes() for support in supports)
        self.entries[key] = (value, supports)
        if len(self.entries) > 4 * KEPT:
            self.entries = dict(sorted(self.entries.items(), key=lambda item: -item[1][0])[:KEPT])

    def best_on(self, cov: Covariance) -> list[np.ndarray]:
        """Return the supports that are best on the full matrix: maybe short, but never empty."""
        ranked = sorted(self.entries.values(), key=lambda entry: -entry[0])[:KEPT]

        def score(supports: list[np.ndarray]) -> float:
            blocks = [cov.submatrix(support) for support in supports if support.size]
            return sum(float(np.linalg.eigvalsh(block)[-1]) for block in blocks)

        best = max((supports for _, supports in ranked), key=score)
        free = np.setdiff1d(np.arange(cov.n_features), np.concatenate(best)).tolist()
        return [support if support.size else np.array([free.pop()]) for support in best]


def _collect(matcher: Matcher, blocks: Iterator[np.ndarray], options: Options, total: int) -> Pool:
    """Match point after point, skipping those whose dual bound cannot beat the best matching."""
    pool = Pool()
    with ordered_map(options.n_jobs, matcher) as submit:
        while not options.monitor.stopped or not pool.seen:
            wave = list(itertools.islice(blocks, WAVE))
            if not wave:
                break
            match = partial(_match_block, level=pool.level)
            for block, found in zip(wave, submit(match, wave)):
                pool.seen += block.shape[0]
                pool.matched += len(found)
                for entry in found:
                    pool.add(*entry)
            options.monitor.update(
                "bipartite", nodes=pool.seen, message=f"{pool.seen:,} of {total:,} points"
            )
    return pool


def _match_block(
    matcher: Matcher, C: np.ndarray, level: float
) -> list[tuple[float, float, list[np.ndarray]]]:
    found: list[tuple[float, float, list[np.ndarray]]] = []
    step = max(1, MEMORY // (C.shape[2] * matcher.rows.shape[0]))
    for start in range(0, C.shape[0], step):
        level = _match_points(matcher, level, matcher.weights(C[start : start + step]), found)
    return found


def _match_points(
    matcher: Matcher,
    level: float,
    weights: np.ndarray,
    found: list[tuple[float, float, list[np.ndarray]]],
) -> float:
    if matcher.total is not None:
        return _share_points(matcher, level, weights, found)
    # The sum of each column's best rows, shared or not, is the cheapest bound on a matching.
    count = weights.shape[2]
    ranks = np.unique(count - matcher.need)
    sorted_tail = np.partition(weights, ranks, axis=2)
    loose = sum(
        sorted_tail[:, j, count - s :].sum(axis=1) for j, s in enumerate(matcher.need.tolist())
    )
    for weight, at_most in zip(weights, loose):
        if at_most <= level or dual_bound(weight, matcher.need) <= level:
            continue
        owner = assign(weight, matcher.need)
        rows = np.flatnonzero(owner >= 0)
        matching = float(weight[owner[rows], rows].sum())
        if matching > level:
            level = matching
            found.append((matching, matcher.rank_value(owner), matcher.supports(owner)))
    return level


def _share_points(
    matcher: Matcher,
    level: float,
    weights: np.ndarray,
    found: list[tuple[float, float, list[np.ndarray]]],
) -> float:
    """Match points for a total of nonzeros: the best rows go each to its best column."""
    best = weights.max(axis=1)
    split = best.shape[1] - matcher.wanted
    values = np.partition(best, split, axis=1)[:, split:].sum(axis=1)
    for weight, matching in zip(weights, values.tolist()):
        if matching > level:
            level = matching
            owner = shared_assignment(weight, matcher.wanted)
            found.append((matching, matcher.rank_value(owner), matcher.supports(owner)))
    return level


# where the points come from --------------------------------------------------------------------


def _random_blocks(rank: int, k: int, total: int, seed: int) -> Iterator[np.ndarray]:
    for number in range(-(-total // BATCH)):
        rng = np.random.default_rng((seed, number))
        C = rng.standard_normal((min(BATCH, total - number * BATCH), rank, k))
        yield C / np.linalg.norm(C, axis=1, keepdims=True)


def _cells(rank: int, eps: float) -> int:
    """Return how many cells along an edge of the cube make their centres an eps/2-net."""
    return math.ceil(2.0 * math.sqrt(rank - 1) / eps) if rank > 1 else 1


def _sphere_points(rank: int, eps: float, nonnegative: bool) -> int:
    sides = 2 if nonnegative else 1  # without signs c and -c are the same point
    return sides * (rank * _cells(rank, eps) ** (rank - 1) if rank > 1 else 1)


def net_size(rank: int, cardinalities: tuple[int, ...], eps: float, nonnegative: bool) -> int:
    """Count the points of the net; components of equal cardinality are interchangeable."""
    single = _sphere_points(rank, eps, nonnegative)
    sizes = [cardinalities.count(s) for s in set(cardinalities)]
    return math.prod(math.comb(single + count - 1, count) for count in sizes)


def sphere_net(rank: int, eps: float, nonnegative: bool) -> np.ndarray:
    """Return an eps/2-net of the unit sphere (up to sign), one point per row.

    The points are cell centres on the faces of the cube [-1, 1]^r, projected to the sphere: the
    projection never moves points outside the ball further apart.
    """
    if rank == 1:
        return np.array([[1.0], [-1.0]]) if nonnegative else np.ones((1, 1))
    m = _cells(rank, eps)
    centres = (2.0 * np.arange(m) + 1.0) / m - 1.0
    grid = np.array(list(itertools.product(centres, repeat=rank - 1)))
    faces = [np.insert(grid, axis, 1.0, axis=1) for axis in range(rank)]
    points = np.concatenate(faces)
    if nonnegative:
        points = np.concatenate([points, -points])
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _net_blocks(rank: int, problem: Problem, eps: float) -> Iterator[np.ndarray]:
    points = sphere_net(rank, eps, problem.nonnegative)
    sizes = problem.cardinalities
    groups = [[j for j in range(problem.k) if sizes[j] == s] for s in sorted(set(sizes))]
    choices = [
        itertools.combinations_with_replacement(range(points.shape[0]), len(group))
        for group in groups
    ]
    order = np.argsort([j for group in groups for j in group])
    joint = itertools.product(*choices) if len(choices) > 1 else ((c,) for c in choices[0])
    while chunk := list(itertools.islice(joint, BATCH)):
        index = np.array([list(itertools.chain(*choice)) for choice in chunk])[:, order]
        yield points[index].transpose(0, 2, 1)  # (m, r, k)


# what is proved ------------------------------------------------------------------------------


def _proved(
    problem: Problem, options: Options, low: Sketch, matcher: Matcher, pool: Pool
) -> tuple[float, tuple[Bound, ...]]:
    """Bound the optimum of the sketch and, where it beats the trace, that of A."""
    cov, k = problem.covariance, problem.k
    s = min(problem.s_max, cov.n_features)
    _ascend(matcher, pool)
    value, supports = max(pool.entries.values(), key=lambda entry: entry[0])
    priced = priced_sphere(low.V, s, supports, value, problem.nonnegative, options)
    total = priced.bound + k * (low.tail + rounding_on(cov, s))
    if not total < trace_bound(problem).value:
        return priced.bound, ()
    data = proof_data(low, s, problem.nonnegative, priced.found, {"prices": priced.prices})
    total *= 1 + margins.low_rank(cov.n_features)
    return priced.bound, (Bound("lowrank", total, data, SAFETY * k * cov.rounding(s)),)


def _ascend(matcher: Matcher, pool: Pool) -> None:
    """Ascend on the sketch from the best matchings; what is found joins the pool."""
    V = matcher.rows
    ranked = sorted(pool.entries.values(), key=lambda entry: -entry[0])[:KEPT]
    back = np.argsort(matcher.order)
    for _, supports in ranked:
        parts = [back[support] for support in supports]
        last = -np.inf
        for _ in range(ASCENTS):
            C = np.column_stack([leading_direction(V[part]) for part in parts])
            owner = assign(matcher.weights(C[None])[0], matcher.need)
            value = matcher.rank_value(owner)
            if value <= last * (1.0 + 1e-9):
                break
            last = value
            parts = [np.flatnonzero(owner == j) for j in range(matcher.need.size)]
            pool.keep(value, matcher.supports(owner))


def _component(V: np.ndarray, support: np.ndarray, nonnegative: bool) -> Component:
    """Return the leading direction of the sketch on the support, as a component."""
    x = V[support] @ leading_direction(V[support])
    if nonnegative:
        x = max(np.maximum(x, 0.0), np.maximum(-x, 0.0), key=lambda y: float(y @ y))
    if not x.any():
        x = np.full(support.size, 1.0)
    x = x / np.abs(x).max()  # squares of its entries may underflow
    kept = x != 0.0
    return Component(support[kept], x[kept] / np.linalg.norm(x[kept]))


METHOD = Method("bipartite", "Asteris et al. 2015", run, shares_totals=True)
