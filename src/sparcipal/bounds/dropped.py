"""From the features that were kept to all of them, when only the variances of the others are known.

Let K be the kept features, D the dropped ones with variances v_1 >= v_2 >= ..., A positive
semidefinite, and S_j = P_j + T_j the support of component j with P_j in K and T_j in D. For a
positive semidefinite matrix in blocks, sqrt(x'Ax) is a seminorm, so that

    x_j'A x_j <= (the best on P_j) + trace A_TT,    also for x >= 0.

So t dropped features are worth v_1 + ... + v_t at most, and what they replace are t of the N
nonzeros that all components have together: with B_n a bound for n nonzeros on K,

    a choice with a dropped feature explains at most max over t >= 1 of B_(N-t) + v_1 + ... + v_t.

"variances"  B_n is the smaller of the bound for all N and the sum of the n largest variances.
"prices"     The Ky Fan split (kyfan/certificate.py) bounds every n at once: B_n = C + the n largest
             prices. A price f on every feature of K lowers C by about f per nonzero; then a dropped
             feature of variance below f is no bargain. A row of the core already pays `pad` or more
             for each of its s - 1 partners, so f up to the pad costs nothing:

                 M - s f I,   prices beta_a + f in the core and f in the rest of K,
                 m_j - f outside the core (m_j counts only positive terms).

             A component may lie in D altogether. It leaves K empty and explains 0 there, so zeros
             stand beside the eigenvalues: C is the sum of the k largest that are positive.

The bound for all features is the larger one of this and the bound on K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .kyfan import kyfan_bound
from .kyfan.certificate import Split, proved_sum, split_matrix
from .kyfan.optimise import Optimiser
from .kyfan.outside import violators

MULTIPLES = (1.0, 1.5)  # of the largest dropped variance, as prices
TEMPERATURES = {"fast": (3e-3, 1e-3), "full": (1e-2, 3e-3, 1e-3, 3e-4)}
STEPS = {"fast": 30, "full": 150}


@dataclass(frozen=True)
class Beyond:
    """What choices with at least one dropped feature explain at most, and why."""

    bound: float
    rule: str
    data: dict[str, Any]  # for the checker


def beyond(
    problem: Problem,
    inside: float,
    bounds: Sequence[Bound],
    components: Sequence[Component],
    dropped: np.ndarray,
    target: float,
    options: Options,
    certify: Any,
) -> Beyond:
    """Bound the choices that use a dropped feature, until the bound is at most `target`.

    `inside` bounds the choices within K, `bounds` are those that were proved there, and `dropped`
    holds the variances of the dropped features, rounded up.
    """
    dropped = np.sort(dropped)[::-1][: problem.n_nonzero]
    if dropped.size == 0:
        return Beyond(0.0, "nothing dropped", {"rule": "nothing dropped"})
    table = _Table(problem, inside, dropped)
    best = table.by_variances()
    if not certify or problem.s_max == 1:
        return best  # without partners, the largest variances are the optimum
    highest = float(dropped[0])
    for split, price in _attempts(problem, bounds, components, highest, target, options, certify):
        best = min(best, table.by_prices(split, price), key=lambda b: b.bound)
        if best.bound <= target or options.monitor.stopped is not None:
            break
    return best


class _Table:
    """B_n + v_1 + ... + v_t for all t, by either rule."""

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
        self.least = np.minimum(inside, traces * (1 + margins.sum_of(self.n)))

    def by_variances(self) -> Beyond:
        return self._largest(self.least, "variances", {})

    def _largest(self, stay: np.ndarray, rule: str, data: dict[str, Any]) -> Beyond:
        rise = 1 + margins.dropped(self.n)
        total = float((stay + self.gains).max(initial=0.0)) * rise
        return Beyond(total, rule, {"rule": rule, **data})

    def by_prices(self, split: Split, price: float) -> Beyond:
        """The split with this price on every feature of K, and a pad that covers it."""
        problem, n = self.problem, self.n
        covariance, s = problem.covariance, problem.s_max
        split = replace(split, pad=float(np.float32(max(price, split.pad))))
        price = min(price, split.pad)
        a = covariance.submatrix(split.features)
        core = split_matrix(0.5 * (a + a.T), split, s, problem.nonnegative)
        matrix = core.matrix.copy()
        matrix[np.diag_indices(matrix.shape[0])] -= s * price
        level = 0.0  # of a component without a kept feature
        if matrix.shape[0] >= problem.k:
            level = max(level, float(np.linalg.eigvalsh(matrix)[matrix.shape[0] - problem.k]))
        _, heights = violators(
            covariance, split.features, core, s, problem.nonnegative, level + price
        )
        heights = heights - price
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
    problem: Problem,
    bounds: Sequence[Bound],
    components: Sequence[Component],
    highest: float,
    target: float,
    options: Options,
    certify: str,
) -> Iterator[tuple[Split, float]]:
    """Splits with a price for every feature, the cheap ones first."""
    value = max(target - highest, 0.5 * target)
    known = [split_of(b.data) for b in bounds if b.name == "kyfan"]
    if not known:
        # a bound for one nonzero less: it is tight where the last nonzero is worth much
        found = kyfan_bound(
            problem.covariance,
            problem.cardinalities,
            total=problem.n_nonzero - 1,
            nonnegative=problem.nonnegative,
            supports=[component.support for component in components],
            value=value,
            tol=0.0,
            effort=certify,
            monitor=options.monitor,
        )
        known = [split_of(found.data)]
        yield known[0], 0.0
    for split in known:
        yield split, split.pad
        for multiple in MULTIPLES:
            yield split, multiple * highest
    if certify == "fast" and known[-1].pad >= highest:
        return  # it was optimised with such a price
    price = max(known[-1].pad, MULTIPLES[-1] * highest)
    yield _refined(problem, known[-1], price, value, options, certify), price


def _refined(
    problem: Problem, split: Split, pad: float, value: float, options: Options, certify: str
) -> Split:
    """The split after some steps with the larger pad."""
    a = problem.covariance.submatrix(split.features)
    split = replace(split, pad=float(np.float32(pad)))
    optimiser = Optimiser(
        0.5 * (a + a.T),
        split,
        problem.s_max,
        problem.k,
        value,
        problem.nonnegative,
        problem.n_nonzero,
        None,
    )
    for mu in TEMPERATURES[certify]:
        optimiser.run(mu, STEPS[certify], options.monitor)
    return optimiser.split()


def split_of(data: dict[str, Any]) -> Split:
    """The split of a Ky Fan bound, on the features that the problem knows."""
    features = np.asarray(data["features"], dtype=np.intp)
    if "kept" in data:
        features = np.asarray(data["kept"], dtype=np.intp)[features]
    return Split(features, data["u"], data["r"], data["price"], float(data["pad"]))
