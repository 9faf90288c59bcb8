"""Trees of cases with certificates of any kind, and what enumeration says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from sparcipal.bounds.kyfan.certificate import proved_sum
from sparcipal.bounds.labels.groups import Group
from sparcipal.bounds.labels.optimise import LeafOptimiser
from sparcipal.bounds.labels.pricing import Priced
from sparcipal.bounds.labels.proof import Label, Proof, State, including, without
from sparcipal.bounds.labels.rows import Rows
from sparcipal.bounds.labels.touch import Touch, touch_matrix
from sparcipal.bounds.pairsplit import Split
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.result import Bound, Result

from .proof_cases import matrix
from .replay import recheck


class Values:
    """The value of every support of at most s features, by a plain eigendecomposition."""

    def __init__(self, A: np.ndarray, s: int, nonnegative: bool) -> None:
        self.p, self.s = A.shape[0], s
        self.of: dict[frozenset[int], float] = {frozenset(): 0.0}
        for size in range(1, min(s, self.p) + 1):
            for support in combinations(range(self.p), size):
                self.of[frozenset(support)] = _value(A, support, nonnegative)

    def best(self, count: int, forced: frozenset[int], banned: frozenset[int], price) -> float:
        """The most that `count` disjoint supports of a group are worth, prices subtracted."""
        worth = sorted(
            (
                (value - sum(price[j] for j in support), support)
                for support, value in self.of.items()
                if forced <= support and not support & banned
            ),
            key=lambda pair: -pair[0],
        )
        return _pack([worth] * count, frozenset(), -np.inf)

    def best_of(self, state: State) -> float:
        """The most that disjoint supports of all groups explain together."""
        lists = []
        for label in state:
            fits = [
                (value, support)
                for support, value in self.of.items()
                if label.forced <= support and not support & label.banned
            ]
            lists += [sorted(fits, key=lambda pair: -pair[0])] * label.count
        if not all(lists):
            return -np.inf
        return _pack(sorted(lists, key=len), frozenset(), -np.inf)


def _pack(lists: list[list[tuple[float, frozenset[int]]]], used: frozenset, least: float) -> float:
    """The best sum of one entry of each list, disjoint, if it is above `least`."""
    if not lists:
        return 0.0
    rest = sum(other[0][0] for other in lists[1:])
    for value, support in lists[0]:
        if value + rest <= least:
            break
        if not support & used:
            found = value + _pack(lists[1:], used | support, least - value)
            least = max(least, found)
    return least


def _value(A: np.ndarray, support: tuple[int, ...], nonnegative: bool) -> float:
    block = A[np.ix_(support, support)]
    if not nonnegative:
        return float(np.linalg.eigvalsh(block)[-1])
    best = -np.inf
    for size in range(1, len(support) + 1):
        for some in combinations(range(len(support)), size):
            w, q = np.linalg.eigh(block[np.ix_(some, some)])
            lead = q[:, -1]
            if lead.min() > -1e-9 or lead.max() < 1e-9:
                best = max(best, float(w[-1]))
    return best


def certificate(
    rng: np.random.Generator, rows: Rows, label: Label, price: np.ndarray, value: float
) -> Group:
    """Any certificate for a group: random, or improved by some steps from a random one."""
    h = rows.field.size
    banned = np.zeros(h, dtype=bool)
    banned[list(label.banned)] = True
    forced = np.sort(np.array(list(label.forced), dtype=np.intp))
    allowed = np.flatnonzero(~banned)
    chosen = rng.permutation(allowed)[: rng.integers(1, allowed.size + 1)]
    core = np.union1d(chosen, forced).astype(np.intp)
    upper = np.triu_indices(core.size, 1)
    a = rows.a[np.ix_(core, core)][upper]
    scale = float(rows.cov.diagonal.max())
    kind = rng.integers(3)
    u = a * rng.uniform(0, 1.2, a.size) if kind else rng.standard_normal(a.size) * 0.3 * scale
    r = rng.standard_normal(a.size) * rng.choice([0.0, 0.5, 2.0])
    pad = (10.0 ** rng.uniform(-3, 0, core.size) * scale).astype(np.float32).astype(np.float64)
    group = Group(label.count, forced, banned, Split.rounded(core, upper, u, r), pad)
    if rng.random() < 0.6:
        none = np.zeros(0, dtype=np.intp)
        optimiser = LeafOptimiser(rows, [group], price, none, max(value, 1e-300), label.count)
        for mu in (0.1, 0.01, 1e-3)[: rng.integers(1, 4)]:
            optimiser.run(mu, int(rng.integers(1, 25)))
        group = optimiser.certificates()[0]
    return group


def priced(
    rng: np.random.Generator, rows: Rows, label: Label, price: np.ndarray, value: float
) -> Priced | None:
    """A branch and bound for a group that ends anywhere, with any certificate for supports that
    leave its core, or any pads; None where the core is too small."""
    group, s = certificate(rng, rows, label, price, value), rows.q + 1
    core, outside = group.core, group.core.size + len(label.banned) < rows.cov.n_features
    if core.size < s or len(label.forced) > s:
        return None
    touches = outside and s > 1 and bool(rng.integers(2))
    a = np.ascontiguousarray(rows.a[np.ix_(core, core)])
    question = TreeQuestion(
        nonnegative=rows.nonnegative,
        prices=price[core],
        tol=float(rng.choice([1e-6, 1e-2])),
        effort=float(rng.choice([1e5, 1e7, 1e9])),
        max_nodes=int(rng.choice([1, 3, 1000])),
        pads=group.pad if outside and not touches else None,
        forced=np.searchsorted(core, group.forced) if group.forced.size else None,
    )
    proof, touch = prove(a, s, question), None
    if outside:
        heights = rows.heights(core, group.pad, price, group.banned, -np.inf)[1]
        if touches:
            matrix = touch_matrix(group, group.pad, rows, price)
            touch = Touch(group, group.pad, float(proved_sum(matrix, heights, 1)))
        else:
            proof = replace(proof, bound=max(proof.bound, float(heights.max(initial=-np.inf))))
    return Priced(group, proof, touch)


def some_prices(rng: np.random.Generator, rows: Rows) -> np.ndarray:
    scale = float(np.abs(rows.a).max()) * rng.choice([0.0, 0.05, 0.3, 1.0])
    price = np.maximum(rng.standard_normal(rows.field.size), 0.0) * scale
    return price.astype(np.float32).astype(np.float64)


def grown(
    rng: np.random.Generator, proof: Proof, value: float, trees: float = 0.0
) -> Iterator[tuple[State, float]]:
    """Fill a proof with cases and certificates at random; yield the leaves and their sums.

    `trees` is the share of groups that have a branch and bound.
    """
    rows = proof.rows
    prices = [proof.add_prices(some_prices(rng, rows)) for _ in range(2)]
    root = Label(proof.k)
    shared = [
        proof.add_group(certificate(rng, rows, root, proof.price(place), value), place)
        for place in prices
    ]
    waiting: list[tuple[int, State]] = [(proof.room(), (root,))]
    while waiting:
        place, state = waiting.pop()
        if rng.random() < (0.8 if len(state) < 3 else 0.3) and place < 40:
            g, feature = int(rng.integers(len(state))), int(rng.integers(rows.field.size))
            out, into = proof.case(place, feature, g)
            waiting += [(out, without(state, g, feature)), (into, including(state, g, feature))]
            continue
        at = int(rng.integers(2))
        groups = []
        for label in state:
            empty = len(label.forced) > rows.q + 1 or label.forced & label.banned
            empty = empty or len(label.banned) == rows.field.size
            if empty or rng.random() < 0.2:
                groups.append(shared[at])
            else:
                # a certificate may speak of more supports than its group has
                some = label if rng.random() < 0.7 else Label(label.count, label.forced)
                tree = None
                if trees and rng.random() < trees:
                    tree = priced(rng, rows, some, proof.price(prices[at]), value)
                if tree is not None:
                    groups.append(proof.add_tree(tree, prices[at]))
                    continue
                group = certificate(rng, rows, some, proof.price(prices[at]), value)
                groups.append(proof.add_group(group, prices[at]))
        yield state, proof.leaf(place, state, groups)


def with_labels(result: Result, X: np.ndarray, seed: int = 1) -> Result:
    """A result for two signed components of equal size, with a random tree of cases beside."""
    cov, _, _ = covariance_of_data(X)
    k, s = len(result.supports), result.settings["n_nonzero_coefs"][0]
    proof = Proof(Rows(cov, np.arange(X.shape[1]), s, False), k)
    for _ in grown(np.random.default_rng(seed), proof, float(cov.diagonal.max())):
        pass
    own, unit = next(b for b in result.certificate.bounds if b.name == "clip"), cov.unit
    assert unit == result.certificate.unit
    bound = Bound("labels", (1 + 1e-9) * proof.bound * unit + own.margin, proof.data(), own.margin)
    bounds = sorted((*result.certificate.bounds, bound), key=lambda one: one.value)
    certificate = replace(result.certificate, bounds=tuple(bounds), bound=bounds[0].value)
    return replace(result, certificate=certificate)


def one_label_case(seed: int) -> list[str]:
    """What is wrong with a random tree of cases on a small problem; empty if nothing is."""
    rng = np.random.default_rng([seed, 23])
    A = matrix(rng)
    while not A.any():
        A = matrix(rng)
    cov, nonnegative = covariance_of(A), bool(rng.integers(2))
    inside, p = cov.dense(), len(A)
    k, s = (int(rng.integers(1, min(p, 3) + 1)) for _ in range(2))
    varying = rng.permutation(np.flatnonzero(inside.diagonal() > 0))
    field = np.sort(varying[: rng.integers(1, varying.size + 1)])
    proof, values = Proof(Rows(cov, field, s, nonnegative), k), Values(inside, s, nonnegative)
    for _ in grown(rng, proof, float(inside.diagonal().max()), trees=0.3):
        pass
    best = values.best_of((Label(k),))
    question = Question((s,) * k, nonnegative, True, best)
    own = recheck("labels", proof.data(), checked_covariance(A, cov.unit), question)
    if proof.bound < best * (1 - 1e-13):
        return [f"bound {proof.bound!r} below the optimum {best!r}"]
    if not best * (1 - 1e-13) <= own <= proof.bound + 1e-12 * abs(proof.bound):
        return [f"rechecked {own!r}, optimum {best!r}, claimed {proof.bound!r}"]
    return []
