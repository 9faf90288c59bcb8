"""Alternatives against enumeration: what a list misses, which costs lie outside their bounds."""

from __future__ import annotations

import itertools

import numpy as np

from sparcipal import Alternatives
from sparcipal.problem.answers import Nearby
from tests.support.constrained import Constrained, constrained, value

SLACK = 1e-9
PASSES = 350  # a memory limit at which tables of `falling` are read in passes


def nearly(seed: int, k: int = 1) -> Constrained:
    """A small problem with twins, ties and zero columns, with or without constraints."""
    case = constrained(seed, k)
    if seed % 2:
        return Constrained(case.X, case.sizes, [[] for _ in case.sizes], [], case.nonnegative)
    return case


def in_blocks(X):
    """A table as a function that returns its blocks."""
    return lambda: iter([X[:3], X[3:]])


def falling(seed):
    """Eight columns that vary less and less, some of them equal or constant, with constraints."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((9, 8)) * np.linspace(2.0, 0.3, 8) ** 2, 2)
    X[:, 1] = X[:, 0] if seed % 3 == 0 else X[:, 1]
    X[:, 5] = 1.0 if seed % 4 == 0 else X[:, 5]
    sizes = (1, 1) if seed % 4 == 3 else (2,)
    include = [[0], []][: len(sizes)] if seed % 5 == 1 else [[] for _ in sizes]
    return Constrained(X, sizes, include, [6] if seed % 2 else [], seed % 3 == 1)


def wrong(case: Constrained, found: Alternatives) -> list[str]:
    """Everything that enumeration contradicts."""
    said: list[str] = []
    anchored = any(case.include)
    taken = [
        set(support.tolist()) | set(case.include[j] if anchored else ())
        for j, support in enumerate(found.result.supports)
    ]
    sizes = list(case.sizes)
    if not anchored:
        order = np.argsort([-len(t) for t in taken], kind="stable")
        ranked = sorted(sizes, reverse=True)
        sizes = [ranked[int(np.flatnonzero(order == j)[0])] for j in range(len(taken))]
    for j, near in enumerate(found.components):
        others = set().union(*(t for i, t in enumerate(taken) if i != j)) | set(case.exclude)
        anchors = set(case.include[j]) if anchored else set()
        said += _wrong_list(case, near, sizes[j], anchors, others)
    for cost in found.drops:
        without = Constrained(
            case.X, case.sizes, case.include, sorted({*case.exclude, cost.feature}),
            case.nonnegative,
        )  # fmt: skip
        said += _outside(f"joint {cost.feature}", cost.value, cost.bound, without.optimum())
    return said


def _supports(p: int, s: int, anchors: set[int], banned: set[int]) -> list[tuple[int, ...]]:
    free = [f for f in range(p) if f not in banned and f not in anchors]
    room = min(s - len(anchors), len(free))
    return [
        tuple(sorted(anchors.union(c)))
        for q in range(room + 1)
        for c in itertools.combinations(free, q)
    ]


def _wrong_list(
    case: Constrained, near: Nearby, s: int, anchors: set[int], banned: set[int]
) -> list[str]:
    A, nonnegative, said = case.covariance, case.nonnegative, []
    p = A.shape[0]
    constant = set(np.flatnonzero((case.X[0] == case.X).all(axis=0)).tolist())
    every = {S: value(A, list(S), nonnegative) for S in _supports(p, s, anchors, banned)}
    eps = SLACK * max(abs(near.value), 1e-300)
    for S, v in every.items():
        if v > near.level + eps and not any(
            _inside(set(S) - constant, e, near) for e in near.supports
        ):
            said.append(f"{S} of {v} is missing above {near.level}")
    for entry in near.supports:
        v = value(A, entry.support.tolist(), nonnegative)
        said += _outside(f"listed {entry.support}", entry.value, entry.bound, v)
    for feature in near.always():
        best = max((v for S, v in every.items() if feature not in S), default=-np.inf)
        if best > near.level + eps:
            said.append(f"{feature} is not in every answer")
    for cost in near.drops:
        best = max((v for S, v in every.items() if cost.feature not in S), default=-np.inf)
        said += _outside(f"without {cost.feature}", cost.value, cost.bound, best)
    for feature, low, high in zip(near.outsiders, near.with_value, near.with_bound):
        best = max((v for S, v in every.items() if feature in S), default=-np.inf)
        said += _outside(f"with {feature}", low, high, best)
    return said


def _inside(support: set[int], entry, near: Nearby) -> bool:
    """Whether a support is inside a listed one after exchanges within the groups."""
    own = set(entry.support.tolist())
    grouped = {f for group in near.groups for f in group.tolist()}
    if not support - grouped <= own:
        return False
    return all(len(support & set(g.tolist())) <= len(own & set(g.tolist())) for g in near.groups)


def _outside(what: str, low: float, high: float, best: float) -> list[str]:
    slack = SLACK * max(abs(best), abs(high), 1e-12)
    return [] if low - slack <= best <= high + slack else [f"{what}: {low} <= {best} <= {high}"]
