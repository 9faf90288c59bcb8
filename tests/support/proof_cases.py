"""Small problems that break careless proofs, and the judge that compares with enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import Proof, prove
from sparcipal.checker.budget import Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.problem.covariance import covariance_of, covariance_of_data

from .replay import recheck, replay


def optimum(A: np.ndarray, s: int, nonnegative: bool, price: np.ndarray) -> float:
    """The largest value over all supports; for x >= 0 over those with a positive eigenvector."""
    best = -np.inf
    for size in range(1, s + 1):
        for support in combinations(range(A.shape[0]), size):
            w, q = np.linalg.eigh(A[np.ix_(support, support)])
            cost = price[list(support)].sum()
            if nonnegative:
                positive = (q > 1e-10).all(axis=0) | (q < -1e-10).all(axis=0)
                w = w[positive]
            if w.size:
                best = max(best, w[-1] - cost)
    return best


def matrix(rng: np.random.Generator) -> np.ndarray:
    """Ties, duplicates, zeros, rank one, blocks, wild scales; at most 8 features."""
    p, kind = int(rng.integers(1, 9)), int(rng.integers(0, 12))
    n = int(rng.integers(1, 2 * p + 2))
    X = rng.standard_normal((n, p))
    if kind == 1:
        X = rng.integers(-1, 2, (n, p)).astype(float)
    elif kind == 2:
        X[:, rng.integers(p)] = X[:, rng.integers(p)]
        X[:, rng.integers(p)] = -X[:, rng.integers(p)]
    elif kind == 3:
        X[:, rng.random(p) < 0.4] = 0
    elif kind == 4:
        X = np.outer(rng.standard_normal(n), rng.standard_normal(p))
    elif kind == 5:
        X *= 10.0 ** rng.integers(-6, 7, p)
    elif kind == 6:
        X = np.abs(X)
    elif kind == 7:
        X = X + 3 * np.outer(rng.standard_normal(n), rng.choice([-1, 1], p))
    elif kind == 8:
        X[:, rng.integers(p)] = X[:, rng.integers(p)] * rng.choice([0.5, -0.5, 2, 1 / 3])
    A = X.T @ X / n
    if kind == 9:
        A[: p // 2, p // 2 :] = 0
        A[p // 2 :, : p // 2] = 0
    elif kind == 10:
        A = np.eye(p) * rng.choice([1.0, 2.0]) + rng.choice([0.0, 0.5]) * (1 - np.eye(p))
    elif kind == 11:
        d = np.sqrt(np.maximum(np.diagonal(A), 1e-30))
        A = A / np.outer(d, d)
        np.fill_diagonal(A, 1.0)
    return (A + A.T) / 2 * 10.0 ** rng.choice([0, 0, 0, -6, 6, -12, 12])


def limits(rng: np.random.Generator) -> dict[str, Any]:
    """Budgets that stop a search anywhere."""
    found: dict[str, Any] = {}
    if rng.random() < 0.4:
        found["max_nodes"] = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        found["effort"] = float(10 ** rng.uniform(5, 8))
    return found


def sabotaged(rng: np.random.Generator, p: int, s: int) -> tuple[np.ndarray, float] | None:
    """Any support, with a value that is a lie."""
    if rng.random() < 0.6:
        return None
    support = rng.choice(p, size=int(rng.integers(1, s + 1)), replace=False)
    return support, 1e9 * float(rng.standard_normal())


def check_proof(proof: Proof, best: float, tol: float, scale: float, complete: bool) -> list[str]:
    """What is wrong with a proof when the optimum is `best`."""
    wrong, eps = [], 1e-12 * max(abs(best), scale)
    if proof.bound < best - 0.1 * eps:
        wrong.append(f"the bound lies {best - proof.bound:g} below the optimum")
    if proof.value > best + eps:
        wrong.append(f"the value lies {proof.value - best:g} above the optimum")
    allowed = (max(tol, 1e-9) + 1e-12) * max(abs(proof.value), scale)
    if proof.status == "optimal" and proof.bound > proof.value + allowed:
        wrong.append("optimal, but not within the tolerance")
    if complete and proof.status != "optimal":
        wrong.append(f"not solved: {proof.status}")
    return wrong


def one_case(seed: int) -> list[str]:
    """A random problem with random options; what is wrong with its proof and with its replay."""
    rng = np.random.default_rng(seed)
    A = matrix(rng)
    p, scale = A.shape[0], max(float(np.abs(A).max()), 1e-300)
    s, nonnegative, priced = int(rng.integers(1, p + 1)), rng.random() < 0.35, rng.random() < 0.35
    price = np.zeros(p)
    if priced:
        price = rng.random(p) * scale * rng.choice([0.05, 0.3, 1.5]) * (rng.random(p) < 0.8)
        if rng.random() < 0.2:
            price[:] = price[0]
    incumbent, budget = sabotaged(rng, p, s), limits(rng)
    tol = float(rng.choice([1e-6, 1e-6, 1e-3, 1e-9, 0.05]))
    proof = prove(
        A,
        s,
        TreeQuestion(
            nonnegative=nonnegative,
            prices=price if priced else None,
            incumbent=incumbent,
            tol=tol,
            **budget,
        ),
    )
    best = optimum(A, s, nonnegative, price)
    wrong = check_proof(proof, best, tol, scale, complete=not budget)
    # the checker computes the matrix in its own way
    other = A * (1 + 1e-14 * rng.standard_normal((p, p)))
    if tol > 1e-8:
        try:
            if replay(proof.log, (other + other.T) / 2) > proof.bound:
                wrong.append("the replay proves less than was claimed")
        except Refused as reason:
            wrong.append(f"the replay fails: {reason}")
    return wrong


def one_large_case(seed: int) -> list[str]:
    """The same for a core and its extension, on data or on a given matrix."""
    rng = np.random.default_rng(seed)
    nonnegative, given = rng.random() < 0.35, rng.random() < 0.4
    if given:
        A = matrix(rng)
        cov = covariance_of(A)
        checked = checked_covariance_of(A, cov.unit)
    else:
        p, center = int(rng.integers(2, 9)), bool(rng.random() < 0.5)
        X = rng.standard_normal((int(rng.integers(2, 12)), p)) * 10.0 ** rng.integers(-1, 2, p)
        X[:, rng.random(p) < 0.15] = 0
        cov = covariance_of_data(X, center=center)[0]
        checked = checked_covariance_of_data(X, center, False, None, cov.unit)[0]
    p = cov.n_features
    A = cov.submatrix(np.arange(p))
    if not A.any():
        return []
    s = int(rng.integers(1, p + 1))
    incumbent, budget = sabotaged(rng, p, s), limits(rng)
    proof = prove_large(
        cov,
        s,
        TreeQuestion(nonnegative=nonnegative, incumbent=incumbent, **budget),
        first_core=int(rng.integers(1, p + 1)),
    )
    best = optimum((A + A.T) / 2, s, nonnegative, np.zeros(p))
    scale = float(np.diagonal(A).max())
    wrong = check_proof(proof, best, 1e-6, scale, complete=not budget and incumbent is None)
    again = recheck("tree", proof.data(), checked, Question((s,), nonnegative, True, proof.value))
    if not again <= proof.bound * (1 + 1e-9):
        wrong.append(f"rechecked, the bound is {again:g} instead of {proof.bound:g}")
    return wrong
