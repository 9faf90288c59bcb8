"""Small problems of every kind of components, and the best admissible ones that a search finds.

For a common set the judge looks at every set. For the others it takes tuples of supports, all of
them where they are few, and improves one component at a time with the others fixed: that gives
admissible components, so that no bound may lie below what they explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from sparcipal import Result, Screened, sparse_pca, verify

from .oracle import Oracle, exact_matrix

KINDS: dict[str, dict[str, Any]] = {
    "free": {"supports": "free"},
    "adjusted": {"supports": "disjoint", "objective": "adjusted"},
    "orthogonal": {"supports": "orthogonal"},
    "common": {"supports": "common"},
    "uncorrelated": {"supports": "free", "uncorrelated": True},
    "both": {"supports": "disjoint", "uncorrelated": True},
}
TUPLES = 150  # of supports that are looked at
POLISHED = 4  # of them from which the search goes on
SWEEPS = 3, 40  # of all tuples, of the best ones
ROUNDING = 1e-12  # of the judge, relative to what the features explain
LEAST = 1e-6  # a smaller part of all variance is too little to divide by
NOTHING = 1e-13  # singular values and products below this part of the largest count as zero


@dataclass(frozen=True)
class ModeCase:
    """One question: a covariance, and keywords of `sparse_pca`."""

    seed: int
    kind: str
    A: np.ndarray
    sizes: tuple[int, ...]
    options: dict[str, Any]
    kept: np.ndarray | None = None  # the features whose covariances are known; None for all

    @property
    def given(self) -> Any:
        """What the question is asked about."""
        if self.kept is None:
            return self.A
        variances = np.diagonal(self.A).copy()
        return Screened(self.A[np.ix_(self.kept, self.kept)], self.kept, variances)

    @property
    def nonnegative(self) -> bool:
        return bool(self.options.get("nonnegative"))

    def run(self) -> Result:
        sizes = self.sizes[0] if self.kind == "common" else list(self.sizes)
        asked = {"n_components": len(self.sizes), "n_nonzero_coefs": sizes, **self.options}
        return sparse_pca(covariance=self.given, **KINDS[self.kind], **asked)

    def __str__(self) -> str:
        p = len(self.A)
        some = "" if self.kept is None else f", kept {self.kept.tolist()}"
        return f"seed {self.seed}: {self.kind}, p={p}{some}, sizes {self.sizes}, {self.options}"


def mode_case(seed: int, kind: str | None = None) -> ModeCase:
    """The question of a seed; kinds take turns."""
    rng = np.random.default_rng([seed, 77])
    kind = kind or list(KINDS)[seed % len(KINDS)]
    p, k = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    if kind == "both" and p < 6:
        k = 2
    A = random_covariance(rng, p)
    most = p // k if kind == "adjusted" else 4
    if kind == "both":  # components that are uncorrelated need room
        sizes = (min(p - 2, 4), 2) if k == 2 else (min(p - 3, 4), 2, 1)
    elif kind == "uncorrelated":
        sizes = tuple(int(rng.integers(j, 5)) for j in range(1, k + 1))
    elif kind == "common":
        sizes = (int(rng.integers(1, 5)),) * k  # fewer features than components: fewer components
    elif rng.random() < 0.6:
        sizes = (int(rng.integers(1, most + 1)),) * k
    else:
        sizes = tuple(int(s) for s in rng.integers(1, most + 1, k))
    options: dict[str, Any] = {"certify": "full" if rng.random() < 0.03 else "fast"}
    if rng.random() < 0.9:  # bounds matter here, not the search
        options["method_options"] = {"effort": 0}
    if kind in ("free", "adjusted") and rng.random() < 0.3:
        options["nonnegative"] = True
    kept = None
    needed = sum(sizes) if kind in ("adjusted", "both") else max(*sizes, k)
    if needed < p and rng.random() < 0.25:
        count = int(rng.integers(needed, p))
        kept = np.sort(np.argsort(-np.diagonal(A), kind="stable")[:count])
    return ModeCase(seed, kind, A, sizes, options, kept)


def random_covariance(rng: np.random.Generator, p: int) -> np.ndarray:
    """Plain ones, ties, twins, zero and nearly zero features, low rank, blocks, all scales."""
    look = int(rng.integers(8))
    X = rng.standard_normal((20, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    if look == 1:  # ties
        A = np.eye(p) + rng.choice([0.0, 0.25, 0.9]) * (1 - np.eye(p))
    elif look == 2:
        X = rng.integers(-1, 2, (6, p)).astype(float)
    elif look == 3:
        X = X[: int(rng.integers(1, 4))]
    elif look == 4:
        i, j = rng.choice(p, 2, replace=False)
        X[:, i] = X[:, j] * rng.choice([1.0, -1.0, 2.0])
    elif look == 5:
        X[:, rng.choice(p, int(rng.integers(1, 3)), replace=False)] = rng.choice([0.0, 1e-7])
    elif look == 6:
        X = X[:, rng.integers(0, 3, p)] + rng.choice([0.0, 1e-6, 0.1]) * X
    if look != 1:
        A = X.T @ X / len(X)
    return (A + A.T) / 2 * 10.0 ** rng.choice([0, 0, -12, 12, -5, 5])


# --- admissible components ---


def best_competitor(case: ModeCase, known: Sequence[np.ndarray] = ()) -> tuple[float, np.ndarray]:
    """The most that admissible components explain, as far as the judge finds it, and these.

    `known` are components to begin with, beside the judge's own.
    """
    if case.kind == "common":
        return _best_common(case)
    rng = np.random.default_rng(case.seed)
    tuples = _tuples(case, rng, [tuple(np.flatnonzero(x).tolist()) for x in known])
    found = []
    for supports in tuples:
        start = _start(case, supports, rng)
        if start is not None:
            W = _improved(case, supports, start, SWEEPS[0])
            found.append((explained(case, W), supports, W))
    found.sort(key=lambda one: -one[0])
    best, most = np.zeros((len(case.A), 0)), 0.0
    for value, supports, W in found[:POLISHED]:
        for start in (W, _start(case, supports, rng), _start(case, supports, rng)):
            W = W if start is None else _improved(case, supports, start, SWEEPS[1])
            value = explained(case, W)
            if value > most and not any(not_admissible(case, W)):  # but for rounding it is
                best, most = W, value
    return most, best


def _best_common(case: ModeCase) -> tuple[float, np.ndarray]:
    s, k = case.sizes[0], min(len(case.sizes), case.sizes[0])
    sets = combinations(range(len(case.A)), s)
    value, T = max((np.linalg.eigvalsh(case.A[np.ix_(T, T)])[-k:].sum(), T) for T in sets)
    W = np.zeros((len(case.A), k))
    W[list(T)] = np.linalg.eigh(case.A[np.ix_(T, T)])[1][:, -k:]
    return float(value), W


def _tuples(
    case: ModeCase, rng: np.random.Generator, known: list[tuple[int, ...]]
) -> list[tuple[tuple[int, ...], ...]]:
    """Supports of all components together; at most TUPLES of them, drawn at random."""
    p = len(case.A)
    lists = [list(combinations(range(p), s)) for s in case.sizes]
    count = int(np.prod([len(one) for one in lists]))
    if count <= 4 * TUPLES:
        every = list(product(*lists))
    else:
        every = [tuple(one[rng.integers(len(one))] for one in lists) for _ in range(6 * TUPLES)]
    if case.kind in ("adjusted", "both"):
        every = [some for some in every if len(set().union(*some)) == sum(case.sizes)]
    if len(set(case.sizes)) == 1:  # the order of equal sizes is nothing new
        every = list({tuple(sorted(some)) for some in every})
    every = sorted(set(every))
    if len(every) > TUPLES:
        every = [every[i] for i in rng.choice(len(every), TUPLES, replace=False)]
    return [*every, tuple(known)] if known else every


def _start(
    case: ModeCase, supports: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> np.ndarray | None:
    """Components one after the other, in a random order, or None if one of them is left nothing."""
    W = np.zeros((len(case.A), len(supports)))
    made: list[int] = []
    order = rng.permutation(len(supports))
    if case.kind in ("orthogonal", "uncorrelated", "both"):  # the shortest have the least choice
        order = np.array(sorted(order, key=lambda j: len(supports[j])))
    for j in order:
        x = _best_one(case, supports[j], W[:, made])
        if x is None:
            return None
        W[:, j] = x
        made.append(int(j))
    return W


def _improved(
    case: ModeCase, supports: Sequence[tuple[int, ...]], W: np.ndarray, sweeps: int
) -> np.ndarray:
    """Replace one component at a time by the best one beside the others, while that helps."""
    value = explained(case, W)
    for _ in range(sweeps):
        before = value
        for j, support in enumerate(supports):
            x = _best_one(case, support, np.delete(W, j, axis=1))
            if x is None:
                continue
            other = W.copy()
            other[:, j] = x
            new = explained(case, other)
            if new > value:
                W, value = other, new
        if value <= before * (1 + 1e-13):
            break
    return W


def _best_one(case: ModeCase, support: tuple[int, ...], others: np.ndarray) -> np.ndarray | None:
    """The best component of a support beside the others, which count first."""
    A, index = case.A, list(support)
    x = np.zeros(len(A))
    if case.kind in ("free", "adjusted"):
        rest = A
        for u in _orthonormal(A, others):
            rest = rest - np.outer(A @ u, A @ u)
        block = rest[np.ix_(index, index)]
        x[index] = _one_sign(block) if case.nonnegative else np.linalg.eigh(block)[1][:, -1]
        return x
    rows = (others if case.kind == "orthogonal" else A @ others)[index].T
    scale = np.linalg.norm(others if case.kind == "orthogonal" else A @ others, axis=0)
    rows = rows / np.where(scale > 0, scale, 1.0)[:, None]
    _, sizes, right = np.linalg.svd(np.vstack([rows, np.zeros((1, len(index)))]))
    free = right[int(np.count_nonzero(sizes > NOTHING)) :].T
    if not free.shape[1]:
        return None
    block = free.T @ A[np.ix_(index, index)] @ free
    y = free @ np.linalg.eigh(block)[1][:, -1]
    x[index] = y / np.linalg.norm(y)
    return x


def _orthonormal(A: np.ndarray, W: np.ndarray) -> Iterator[np.ndarray]:
    """Combinations of the columns whose scores are orthonormal."""
    w, Q = np.linalg.eigh(W.T @ A @ W)
    for value, q in zip(w, Q.T):
        if value > 1e-10 * max(float(w[-1]), 1e-300):
            yield W @ q / np.sqrt(value)


def _one_sign(block: np.ndarray) -> np.ndarray:
    """The best nonnegative unit vector: an eigenvector on its own support."""
    s = len(block)
    best, most = np.eye(s)[int(np.argmax(np.diagonal(block)))], float(np.diagonal(block).max())
    for size in range(2, s + 1):
        for part in map(list, combinations(range(s), size)):
            w, Q = np.linalg.eigh(block[np.ix_(part, part)])
            q = Q[:, -1] if Q[:, -1].sum() > 0 else -Q[:, -1]
            if (q >= 0).all() and w[-1] > most:
                best, most = np.zeros(s), float(w[-1])
                best[part] = q / np.linalg.norm(q)
    return best


def explained(case: ModeCase, W: np.ndarray) -> float:
    """The objective of these components, adjusted variances in their best order."""
    products = W.T @ case.A @ W
    if case.kind in ("orthogonal", "common"):
        return float(np.trace(products))
    least = LEAST * float(np.trace(case.A))
    orders = map(list, permutations(range(len(products))))
    return max(_pivots(products[order][:, order], least) for order in orders)


def _pivots(products: np.ndarray, least: float) -> float:
    """What each explains beyond those before it, summed, up to the first that explains little.

    What is left of that one and of those after it may be rounding, and counts as zero.
    """
    rest, total = products.copy(), 0.0
    for j in range(len(rest)):
        if not rest[j, j] > least:
            break
        total += float(rest[j, j])
        rest = rest - np.outer(rest[:, j], rest[j]) / rest[j, j]
    return total


# --- the judge ---


def one_mode_case(seed: int, kind: str | None = None) -> list[str]:
    """What is wrong with the answer to this question: nothing, if all is well."""
    case = mode_case(seed, kind)
    return list(wrong(case, case.run()))


def wrong(case: ModeCase, result: Result) -> Iterator[str]:
    size = float(np.diagonal(case.A).sum())
    W = np.asarray(result.components).T
    yield from not_admissible(case, W)
    exact = _exactly(case, W)
    if result.value > exact + ROUNDING * size:
        yield f"the value {result.value!r} is more than the components explain, {float(exact)!r}"
    most, _ = best_competitor(case, list(W.T))
    if most > result.bound + ROUNDING * size:
        yield f"components explain {most!r}, more than the bound {result.bound!r}"
    if result.bound < result.value:
        yield f"the bound {result.bound!r} is below the value {result.value!r}"
    for arithmetic in ("float", "exact") if case.seed % 4 == 0 else ("float",):
        said = verify(result, covariance=case.given, arithmetic=arithmetic)
        if said.verdict != "proved":
            yield f"{arithmetic} verify: {said.verdict}, {said.reason}"


def not_admissible(case: ModeCase, W: np.ndarray) -> Iterator[str]:
    """What these components lack of what was asked for."""
    if np.abs(np.linalg.norm(W, axis=0) - 1).max() > 1e-14:
        yield "a component has no unit norm"
    counts = np.count_nonzero(W, axis=0)
    if any(a > b for a, b in zip(sorted(counts), sorted(case.sizes))):
        yield f"supports of {counts.tolist()} features"
    if case.nonnegative and W.min() < 0:
        yield "a loading is negative"
    if case.kind in ("adjusted", "both") and np.count_nonzero(W, axis=1).max() > 1:
        yield "supports are not disjoint"
    if case.kind == "common" and np.count_nonzero(W.any(axis=1)) > case.sizes[0]:
        yield "the common set is too large"
    off = ~np.eye(W.shape[1], dtype=bool)
    if case.kind in ("orthogonal", "common") and np.abs(W.T @ W)[off].max(initial=0.0) > 1e-13:
        yield f"components are not orthogonal: {np.abs(W.T @ W)[off].max():.3g}"
    if case.kind in ("uncorrelated", "both"):
        reach = np.sqrt(np.maximum(np.diagonal(case.A), 0.0)) @ np.abs(W)
        # a loading may be wrong by an ulp of 1, however small it is
        whole = np.sqrt(np.maximum(np.diagonal(case.A), 0.0) @ (W != 0.0))
        allowed = 1e-10 * np.outer(reach, reach) + 2e-15 * np.outer(whole, whole)
        common = np.abs(W.T @ case.A @ W) - allowed
        if common[off].max() > 0:
            yield f"scores are correlated: {common[off].max():.3g}"


def _exactly(case: ModeCase, W: np.ndarray) -> Fraction:
    oracle = Oracle(exact_matrix(case.A), case.nonnegative)
    if case.kind in ("orthogonal", "common"):
        return oracle.worth(W.T)
    return oracle.adjusted(list(W.T))
