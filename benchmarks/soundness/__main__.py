"""value <= optimum <= bound on thousands of small problems made to break it, each rechecked.

    python -m benchmarks.soundness [PROBLEMS [FIRST_SEED]]

The optimum comes from a table over all subsets of features, written here and sharing nothing with
the solver. A violation is printed with its seed, and the exit code is 1.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from sparcipal import sparse_pca, verify

KINDS = ("gaussian", "integers", "rank one", "correlation", "diagonal", "copies", "wide")
SLACK = 1e-9  # what the oracle's own eigenvalues may be off, relative to the optimum


@dataclass(frozen=True)
class Case:
    """One question."""

    A: np.ndarray
    sizes: list[int]
    nonnegative: bool
    certify: str | bool


def case(seed: int) -> Case:
    """A small covariance with ties, zeros, copies, low rank or a wild scale, and a question."""
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(len(KINDS))]
    p = int(rng.integers(1, 9))
    n = {"rank one": 1, "wide": max(1, p // 2)}.get(kind, int(rng.integers(2, 12)))
    X = rng.integers(-2, 3, (n, p)) * 1.0 if kind == "integers" else rng.standard_normal((n, p))
    if kind == "copies":
        for _ in range(3):
            i, j = rng.integers(p, size=2)
            X[:, i] = X[:, j] * rng.choice([1.0, -1.0, 0.0, 0.5, 1e-8])
    A = X.T @ X / n
    if kind == "diagonal":
        A = np.diag(np.diagonal(A))
    if kind == "correlation":
        d = np.sqrt(np.maximum(np.diagonal(A), 1e-12))
        A = A / np.outer(d, d)
    A = A * 10.0 ** rng.integers(-12, 13)
    k = int(rng.integers(1, min(3, p) + 1))
    sizes = [int(rng.integers(1, p // k + 1)) for _ in range(k)]
    certify = ("fast", "full", False)[rng.integers(3)]
    return Case((A + A.T) / 2, sizes, bool(rng.integers(2)), certify)


def optimum(A: np.ndarray, sizes: list[int], nonnegative: bool) -> float:
    """By a table over subsets: what each can give to one component, then who gets which."""
    p = A.shape[0]
    alone = np.zeros(1 << p)
    for mask in range(1, 1 << p):
        members = [i for i in range(p) if mask >> i & 1]
        without = max(alone[mask & ~(1 << i)] for i in members)
        values, vectors = np.linalg.eigh(A[np.ix_(members, members)])
        lead = vectors[:, -1]
        # A nonnegative optimum with full support is a local maximum, hence the leading eigenvector.
        allowed = not nonnegative or lead.min() >= -1e-9 or lead.max() <= 1e-9
        alone[mask] = max(without, float(values[-1]) if allowed else 0.0)
    best = np.zeros(1 << p)
    for s in sizes:
        before = best
        best = before.copy()
        for mask in range(1, 1 << p):
            part = mask
            while part:
                if part.bit_count() <= s:
                    best[mask] = max(best[mask], alone[part] + before[mask & ~part])
                part = (part - 1) & mask
    return float(best[-1])


def violation(question: Case) -> tuple[str, bool]:
    """What is wrong ("" if nothing), and whether optimality was proved."""
    result = sparse_pca(
        covariance=question.A,
        n_components=len(question.sizes),
        n_nonzero_coefs=question.sizes,
        nonnegative=question.nonnegative,
        certify=question.certify,
    )
    best = optimum(question.A, question.sizes, question.nonnegative)
    proved = result.status.value == "optimal"
    if result.value > best * (1 + SLACK):
        return f"value {result.value!r} above the optimum {best!r}", proved
    if result.bound < best * (1 - SLACK):
        return f"bound {result.bound!r} below the optimum {best!r} ({result.certificate})", proved
    checked = verify(result, covariance=question.A)
    if not checked:
        return f"verify: {checked.verdict}: {checked.reason}", proved
    return "", proved


def main(problems: int = 2000, first: int = 0) -> int:
    wrong = optimal = asked = 0
    for seed in range(first, first + problems):
        question = case(seed)
        if not question.A.any():
            continue
        asked += 1
        reason, proved = violation(question)
        optimal += proved
        if reason:
            wrong += 1
            print(f"seed {seed}, {question.sizes}, {question.certify}: {reason}")
        if asked % 200 == 0:
            print(f"{asked} problems, {wrong} violations", file=sys.stderr, flush=True)
    print(f"{asked} problems, {wrong} violations, {optimal} proved optimal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
