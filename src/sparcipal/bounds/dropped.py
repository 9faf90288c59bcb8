"""From the screened features to all; statement and proof: docs/methods/dropped.rst.

Only the variances of the dropped features are known. Let K be the screened features, D the dropped
ones with variances v_1 >= v_2 >= ..., A positive semidefinite, and S_j = P_j + T_j the support of
component j with P_j in K and T_j in D. For a positive semidefinite matrix in blocks, sqrt(x'Ax) is
a seminorm, so that

    x_j'A x_j <= (the best on P_j) + trace A_TT,    also for x >= 0.

So t dropped features are worth at most v_1 + ... + v_t, and they replace t of the N nonzeros that
all components have together. With B_n a bound for n nonzeros on K,

    a choice with a dropped feature explains at most max over t >= 1 of B_(N-t) + v_1 + ... + v_t.

"variances"  B_n is the smaller of the bound for all N and the sum of the n largest variances.
"prices"     The Ky Fan split (kyfan/certificate.py) bounds every n at once: B_n = C + the n largest
             prices. A price f on every feature of K lowers C by about f per nonzero; then a dropped
             feature of variance below f adds nothing. A row of the core already pays `pad` or more
             for each of its s - 1 partners, so f up to the pad costs nothing:

                 M - s f I,   prices beta_a + f in the core and f in the rest of K,
                 A_jj and every charge in m_j less by f outside the core (only charges that stay
                 positive count).

             A component may lie in D altogether. It leaves K empty and explains 0 there, so zeros
             stand beside the eigenvalues: C is the sum of the k largest that are positive.
"rows"       The variances are all that is known of D only as long as nothing more is read. With the
             covariances of a feature with all others, m_j of kyfan/certificate.py bounds what it
             is worth beside any of them. So the Ky Fan sum over all features is computed: rows of
             those features are read that a variance does not dismiss, a strip of them by a pass.
             A feature of D has no price, so that n - 1 prices are paid at most.

The bound for all features is the larger one of this and the bound on K. Adjusted variances are
bounded by one component in another matrix (adjusted/), and overlapping ones of other kinds by one
component each: then B_n is for one component, and N for its nonzeros. A common set has N = s.
Components that overlap are, without their dropped features, no longer of their kind: then B_n is
the sum of the n largest variances alone, or the eigenvalues, which bound what the features of all
components together explain. Orthogonal ones also have "rows", without prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.screening import Survivors
from ..data.strips import EveryRow
from ..numerics import margins
from ..numerics.margins import SAFETY, top_sum
from ..problem.covariance import Covariance
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound, Certificate
from .adjusted.lowered import Lowered
from .adjusted.optimise import worth
from .kyfan import JointQuestion, kyfan_bound
from .kyfan.certificate import KyFanSplit, kyfan_matrix, proved_sum
from .kyfan.optimise import KyFanOptimiser
from .kyfan.question import Sizes
from .outside import Outside

# The rows are read again for twice as many features when the bound for all features exceeds that
# for the screened ones by more than this share of the gap.
SHARE = 1.0
# The default proof is content with this gap where features were dropped: reading on and proving on
# cost more than reading the table did.
ROUGH = 0.015
MULTIPLES = (1.0, 1.5)  # prices to try, in units of the largest dropped variance
TEMPERATURES = {"fast": (3e-3, 1e-3), "full": (1e-2, 3e-3, 1e-3, 3e-4)}
STEPS = {"fast": 30, "full": 150}
# Rows of all features are read where the bound could fall by more than this share of the value,
# and where that takes no more than about so many nanoseconds of one core.
WORTH = 0.05
PAD = 0.03  # what a core pays for a feature outside it, in what a nonzero is worth on average
WORK = {"fast": 6e10, "full": 6e11}
UNION = ("eigenvalues", "trace")  # bounds on all features together, however they are shared


@dataclass(frozen=True)
class Widened:
    """A certificate for all features, and whether more of them should be screened in."""

    certificate: Certificate
    target: float  # a bound that is good enough; inside units
    enough: float  # dropped features below this variance would not matter; inside units

    @property
    def settled(self) -> bool:
        return self.certificate.bound <= self.target


def widened(
    problem: Problem,
    certificate: Certificate,
    components: Sequence[Component],
    survivors: Survivors,
    options: Options,
    certify: Any,
) -> Widened:
    """Extend the certificate of the screened features to all of them."""
    among, value = Kept(problem, components, certificate, survivors), certificate.value
    extensible = _extensible(among, certify)
    target = _target(problem, extensible[0].value, value, options, certify)
    best: Extension | None = None
    for inside in extensible:
        if best is None or max(inside.value, target) < best.total:
            found = _extended(among, inside, options, certify)
            best = found if best is None or found.total < best.total else best
    assert best is not None
    new = _claimed(certificate, best, survivors)
    enough = max(
        (float(b.data["pad"]) for b in certificate.bounds if b.name == "kyfan"), default=0.0
    )
    target = _target(problem, best.inside.value, value, options, certify)
    if best.data["rule"] == "variances":  # prices of that size do not help
        enough = min(enough, (target - best.inside.value) / problem.n_nonzero)
    return Widened(new, target, enough)


@dataclass(frozen=True)
class Extension:
    """A bound on the screened features, and the bound for all that follows from it."""

    inside: Bound
    total: float
    data: dict[str, Any]  # for the checker


def _extensible(among: Kept, certify: Any) -> list[Bound]:
    """Return the bounds on the screened features that can be extended, the lowest first."""
    bounds = among.certificate.bounds
    others = [b for b in bounds if b.name == "adjusted" and "y" in b.data["matrix"]][:1]
    others = others if certify else []
    if not among.whole(bounds[0]):
        others += [b for b in bounds if b.name == "parts"][:1]
        others += [b for b in bounds if b.name in UNION][:1]
    chosen = {id(bound): bound for bound in (bounds[0], *others)}
    return sorted(chosen.values(), key=lambda bound: bound.value)


def _extended(among: Kept, inside: Bound, options: Options, certify: Any) -> Extension:
    """Extend a bound in the best of the ways that there are for it."""
    problem, found = among.problem, []
    if inside is among.certificate.bounds[0] or inside.name in UNION:
        found.append(_together(among, inside, options, certify))
    if inside.name == "parts" and not (problem.disjoint or problem.common):
        every = np.arange(problem.covariance.n_features)
        seen = Seen(problem.covariance, every, np.ones(problem.k))
        found.append(_by_parts(among, inside, seen, options, certify))
    if inside.name == "adjusted" and "y" in inside.data["matrix"]:
        found.append(_by_parts(among, inside, _seen(problem, inside), options, certify))
    return min(found, key=lambda one: one.total)


def _together(among: Kept, inside: Bound, options: Options, certify: Any) -> Extension:
    """Extend a bound for the nonzeros of all components together."""
    problem, certificate = among.problem, among.certificate
    target = _target(problem, inside.value, certificate.value, options, certify)
    stays = inside.value if among.whole(inside) else np.inf
    known = Among(problem, stays, certificate.bounds, among.components)
    # prices are paid by features of disjoint components
    effort = certify if problem.disjoint else False
    found = beyond(known, among.survivors.dropped, target, options, effort)
    data = {**found.data, "inside": inside.value, "touching": found.bound}
    return Extension(inside, max(found.bound, inside.value), data)


def _target(problem: Problem, inside: float, value: float, options: Options, certify: Any) -> float:
    """Return a bound for all features that is good enough, given that for the screened ones."""
    least = ROUGH * value - (inside - value) if certify == "fast" and problem.k > 1 else 0.0
    return inside + max(SHARE * (inside - value), options.tol * value, least)


def _claimed(certificate: Certificate, found: Extension, survivors: Survivors) -> Certificate:
    """Return the certificate for all features."""
    value, inside, touching = certificate.value, found.inside, float(found.data["touching"])
    data = {**found.data, "kept": survivors.kept.astype(np.int32)}
    bound = replace(inside, value=max(found.total, value), data={**inside.data, "screened": data})
    screening = {
        "kept": int(survivors.kept.size),
        "dropped": int(survivors.n_dropped),
        "largest_dropped": float(survivors.dropped.max(initial=0.0)),
        "rule": data["rule"],
        "inside": inside.value,
        "touching": touching,
        "support_unchanged": bool(touching < value - certificate.rounding),
        "bound_holds": bool(touching <= inside.value),
    }
    proved_away = survivors.n_dropped if screening["support_unchanged"] else 0
    return replace(
        certificate,
        bound=bound.value,
        bounds=(bound,),
        eliminated=certificate.eliminated + proved_away,
        screening=screening,
    )


@dataclass(frozen=True)
class Kept:
    """The question on the kept features, its answer, and what was proved of it."""

    problem: Problem
    components: Sequence[Component]
    certificate: Certificate
    survivors: Survivors

    def whole(self, bound: Bound) -> bool:
        """Return whether a bound also holds for what is left without the dropped features."""
        return self.problem.disjoint or self.problem.common or bound.name in UNION


@dataclass(frozen=True)
class Narrowed:
    """A certificate for all features, and those that should have been kept, the worst first."""

    certificate: Certificate
    missed: np.ndarray


def narrowed(
    among: Kept, wide: Certificate, every: EveryRow, options: Options, certify: Any
) -> Narrowed:
    """Return a tighter certificate for all features than `wide`, by the rule "rows", or `wide`.

    Nothing is read where variances leave little to gain, or where that would take too long.
    """
    nothing = Narrowed(wide, np.empty(0, dtype=np.intp))
    problem, certificate, survivors = among.problem, among.certificate, among.survivors
    assert wide.screening is not None
    excess = wide.bound - certificate.bound
    joint = problem.disjoint or problem.orthogonal
    if not (certify and joint and problem.s_max > 1 and excess > WORTH * wide.value):
        return nothing
    inside = certificate.bounds[0]
    splits = [KyFanSplit.of(b.data) for b in certificate.bounds if b.name == "kyfan"]
    if not splits:
        supports = [component.support for component in among.components]
        question = JointQuestion(
            problem.covariance,
            problem.cardinalities,
            supports=supports,
            value=certificate.value,
            nonnegative=problem.nonnegative,
            tol=0.0,
            total=problem.n_nonzero,
            overlapping=problem.orthogonal,
            room=options.room,
        )
        pad = PAD * certificate.value / problem.n_nonzero
        found = kyfan_bound(question, effort=certify, least_pad=pad, monitor=options.monitor)
        splits = [KyFanSplit.of(found.data)]
    by_rows = _by_rows(problem, splits[0], survivors.kept, every, certify)
    if by_rows is None:
        return nothing
    touching, features = by_rows
    missed = features[~np.isin(features, survivors.kept)]
    if touching >= wide.screening["touching"]:
        return Narrowed(wide, missed)
    data = {
        "rule": "rows",
        "split": splits[0].data(),
        "inside": inside.value,
        "touching": touching,
    }
    by_all = Extension(inside, max(touching, inside.value), data)
    return Narrowed(_claimed(certificate, by_all, survivors), missed)


def _by_rows(
    problem: Problem, split: KyFanSplit, kept: np.ndarray, every: EveryRow, certify: str
) -> tuple[float, np.ndarray] | None:
    """Bound the choices with a dropped feature by rows of all features; None if that is too much.

    The features that raise the bound are returned too, the worst first. Dropped features have no
    price, so that one price at least is not paid.
    """
    covariance, s, n = problem.covariance, problem.s_max, problem.n_nonzero
    a = covariance.submatrix(split.features)
    core = kyfan_matrix(0.5 * (a + a.T), split, s, problem.nonnegative)
    level, where = -np.inf, kept[split.features]
    if split.features.size >= problem.k:
        level = float(np.linalg.eigvalsh(core.matrix)[split.features.size - problem.k])
    outside = Outside(every, where, core, s, problem.nonnegative)
    if not split.pad > 0.0 or every.work(outside.rows_asked(level)) > WORK[certify]:
        return None
    features, heights = outside.violators(level, every.block_rows)
    rivals, rounding = heights, covariance.rounding(n)
    if not problem.disjoint:  # a component may lie on features that were left out
        rivals = np.append(heights, np.zeros(problem.k))
        rounding = problem.k * covariance.rounding(s)
    total = proved_sum(core.matrix, rivals, problem.k)
    total += top_sum(core.price, n - 1) * (1 + margins.prices(n))
    total = (total + SAFETY * rounding) * (1 + margins.dropped(n))
    return total, features[np.argsort(-heights, kind="stable")]


@dataclass(frozen=True)
class Seen:
    """The matrix in which each component is bounded alone, and what every component counts for."""

    covariance: Covariance
    features: np.ndarray  # those of the matrix, among the screened ones
    heights: np.ndarray  # (k,), the largest first
    shift: float = 0.0  # that was added to every variance


def _seen(problem: Problem, bound: Bound) -> Seen:
    """Return the matrix of a bound on adjusted variances."""
    told, inner = bound.data["matrix"], problem.covariance
    every = np.arange(inner.n_features)
    features = np.asarray(bound.data.get("kept", every), dtype=np.intp)
    inner = inner.restrict(features) if features.size < every.size else inner
    lowered = Lowered(inner, np.asarray(told["features"], dtype=np.intp), told["y"])
    assert lowered.heights is not None
    heights = np.append(lowered.heights, np.ones(problem.k))[: problem.k]
    return Seen(lowered.materialise(), features, heights, lowered.shift)


def _by_parts(among: Kept, inside: Bound, seen: Seen, options: Options, certify: Any) -> Extension:
    """Extend the bound of each component alone, then add them, each as often as it counts."""
    problem, dropped = among.problem, among.survivors.dropped
    varying = dropped[dropped > 0.0] + seen.shift
    own = {part["s"]: float(part["value"]) for part in inside.data["parts"]}
    places = (np.searchsorted(seen.features, c.support) for c in among.components)
    known = [Component(at, c.weights) for at, c in zip(places, among.components)]
    first = max(known, key=lambda c: worth(seen.covariance, c))
    found: dict[int, Beyond] = {}
    for s, value in own.items():
        alone = Problem(seen.covariance, (s,), problem.nonnegative)
        found[s] = beyond(Among(alone, value, (), (first,)), varying, value, options, certify)
    highest = [max(found[s].bound, own[s]) for s in problem.cardinalities]
    total = _weighted(highest, seen.heights)
    touching = 0.0  # at least one component uses a dropped feature
    for j, s in enumerate(problem.cardinalities):
        others = [*highest[:j], *highest[j + 1 :]]
        touching = max(touching, _weighted([found[s].bound, *others], seen.heights))
    parts = [{"s": s, "inside": own[s], **found[s].data} for s in own]
    rule = max(found.values(), key=lambda b: b.bound).rule
    data = {"rule": rule, "parts": parts, "inside": inside.value, "touching": touching}
    return Extension(inside, max(total, inside.value), data)


def _weighted(bounds: Sequence[float], heights: np.ndarray) -> float:
    """Add bounds times heights: the largest bound counts for the largest height, and so on."""
    total = float(np.sort(bounds)[::-1] @ heights)
    return total * (1 + SAFETY * margins.sum_of(2 * heights.size + 4))


@dataclass(frozen=True)
class Among:
    """The problem on the screened features, its answer and the bounds proved for it."""

    problem: Problem
    inside: float  # what is left of a choice within K explains no more
    bounds: Sequence[Bound]
    components: Sequence[Component]


@dataclass(frozen=True)
class Beyond:
    """An upper bound for components that use at least one dropped feature, with its proof."""

    bound: float
    rule: str
    data: dict[str, Any]  # for the checker


def beyond(
    known: Among, dropped: np.ndarray, target: float, options: Options, certify: Any
) -> Beyond:
    """Bound the choices that use a dropped feature, until the bound is at most `target`.

    `dropped` holds the variances of the dropped features, rounded up.
    """
    problem = known.problem
    dropped = np.sort(dropped)[::-1][: problem.n_nonzero]
    if dropped.size == 0:
        return Beyond(0.0, "nothing dropped", {"rule": "nothing dropped"})
    table = _Table(problem, known.inside, dropped)
    best = table.by_variances()
    if not certify or problem.s_max == 1:
        return best  # without partners, the largest variances are the optimum
    highest = float(dropped[0])
    for split, price in _attempts(known, highest, target, options, certify):
        best = min(best, table.by_prices(split, price), key=lambda b: b.bound)
        if best.bound <= target or options.monitor.stopped is not None:
            break
    return best


class _Table:
    """Evaluates B_n + v_1 + ... + v_t for all t, by either rule."""

    def __init__(self, problem: Problem, inside: float, dropped: np.ndarray) -> None:
        self.problem, self.dropped = problem, dropped
        covariance, self.n = problem.covariance, problem.n_nonzero
        # t = 1, 2, ... dropped features and the n - t that stay
        self.t = np.arange(1, min(self.n, dropped.size) + 1)
        self.gains = np.cumsum(dropped[: self.t.size])
        heavy = np.sort(np.maximum(covariance.diagonal, 0.0))[::-1][: self.n]
        heavy = np.append(heavy, np.zeros(self.n - heavy.size)) + covariance.psd_shift
        traces = np.append(0.0, np.cumsum(heavy))[self.n - self.t]
        traces += SAFETY * covariance.rounding(self.n)
        self.least = np.minimum(inside, traces * (1 + SAFETY * margins.sum_of(self.n)))

    def by_variances(self) -> Beyond:
        return self._largest(self.least, "variances", {})

    def _largest(self, stay: np.ndarray, rule: str, data: dict[str, Any]) -> Beyond:
        rise = 1 + margins.dropped(self.n)
        total = float((stay + self.gains).max(initial=0.0)) * rise
        return Beyond(total, rule, {"rule": rule, **data})

    def by_prices(self, split: KyFanSplit, price: float) -> Beyond:
        """Bound with `price` on every feature of K; the pad of the split must cover it."""
        problem, n = self.problem, self.n
        covariance, s = problem.covariance, problem.s_max
        split = replace(split, pad=float(np.float32(max(price, split.pad))))
        price = min(price, split.pad)
        a = covariance.submatrix(split.features)
        core = kyfan_matrix(0.5 * (a + a.T), split, s, problem.nonnegative)
        matrix = core.matrix.copy()
        matrix[np.diag_indices(matrix.shape[0])] -= s * price
        level = 0.0  # what a component without a screened feature explains in K
        if matrix.shape[0] >= problem.k:
            level = max(level, float(np.linalg.eigvalsh(matrix)[matrix.shape[0] - problem.k]))
        outside = Outside(covariance, split.features, core, s, problem.nonnegative, price)
        _, heights = outside.violators(level)
        rivals = np.append(heights[heights > level], np.zeros(problem.k))
        base = proved_sum(matrix, rivals, problem.k)
        base += SAFETY * covariance.rounding(n) + margins.flat_price(s) * price * problem.k
        rest = covariance.n_features - split.features.size
        prices = np.append(core.price + price, np.full(min(rest, n), price))
        prices = np.append(np.sort(prices)[::-1][:n], np.zeros(max(n - prices.size, 0)))
        staying = base + np.append(0.0, np.cumsum(prices))[n - self.t] * (1 + margins.prices(n))
        data = {"split": split.data(), "price": price}
        return self._largest(np.minimum(self.least, staying), "prices", data)


def _attempts(
    known: Among, highest: float, target: float, options: Options, certify: str
) -> Iterator[tuple[KyFanSplit, float]]:
    """Yield splits with the price for every feature, the cheap ones first."""
    problem = known.problem
    value = max(target - highest, 0.5 * target)
    splits = [KyFanSplit.of(b.data) for b in known.bounds if b.name == "kyfan"]
    if not splits:
        # bound one nonzero less: this is tight where the last nonzero is worth much
        question = JointQuestion(
            problem.covariance,
            problem.cardinalities,
            supports=[component.support for component in known.components],
            value=value,
            nonnegative=problem.nonnegative,
            tol=0.0,
            total=problem.n_nonzero - 1,
            room=options.room,
        )
        found = kyfan_bound(question, effort=certify, monitor=options.monitor)
        splits = [KyFanSplit.of(found.data)]
        yield splits[0], 0.0
    for split in splits:
        yield split, split.pad
        for multiple in MULTIPLES:
            yield split, multiple * highest
    if certify == "fast" and splits[-1].pad >= highest:
        return  # the split was optimised with such a price already
    price = max(splits[-1].pad, MULTIPLES[-1] * highest)
    yield _refined(problem, splits[-1], price, value, options, certify), price


def _refined(
    problem: Problem, split: KyFanSplit, pad: float, value: float, options: Options, certify: str
) -> KyFanSplit:
    """Optimise the split a little further with the larger pad."""
    a = problem.covariance.submatrix(split.features)
    split = replace(split, pad=float(np.float32(pad)))
    sizes = Sizes(problem.s_max, problem.k, problem.n_nonzero, problem.nonnegative)
    optimiser = KyFanOptimiser(0.5 * (a + a.T), split, sizes, value)
    for mu in TEMPERATURES[certify]:
        optimiser.run(mu, STEPS[certify], options.monitor, room=options.room)
    return optimiser.split()
