"""Recovery of two sparse eigenvectors from few samples (Papailiopoulos et al. 2013)."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from benchmarks.lowrank.search import say
from sparcipal.problem.covariance import covariance_of_data
from sparcipal.problem.problem import Options, Problem
from sparcipal.search.registry import get_method

P, SIZE, VALUES = 500, 10, (400.0, 300.0)
# method, its options, and what the paper prints for 50 and for 5 samples (nan: nothing)
METHODS: list[tuple[str, str, dict[str, Any], float, float]] = [
    ("PCA + thresholding", "threshold", {}, 0.98, 0.85),
    ("GPower l0, 0.8", "gpower", {"norm": "l0", "penalty": 0.8}, 1.0, 0.33),
    ("GPower l1, 0.8", "gpower", {"norm": "l1", "penalty": 0.8}, 1.0, 0.33),
    ("GPower l0, searched", "gpower", {"norm": "l0"}, np.nan, np.nan),
    ("GPower l1, searched", "gpower", {"norm": "l1"}, np.nan, np.nan),
    ("greedy (FullPath)", "greedy", {}, 1.0, 0.96),
    ("TPower", "tpower", {}, 1.0, 0.96),
    ("spannogram, rank 2", "spannogram", {}, 1.0, 0.96),
]


def sample(rng: np.random.Generator, m: int) -> tuple[np.ndarray, set[frozenset[int]]]:
    """m rows from N(0, Sigma), equal loadings as in Shen & Huang (2008), and the two supports."""
    places = rng.permutation(P)[: 2 * SIZE].reshape(2, SIZE)
    X = rng.standard_normal((m, P))
    for value, place in zip(VALUES, places):
        v = np.zeros(P)
        v[place] = SIZE**-0.5
        X += np.outer(rng.standard_normal(m) * np.sqrt(value) - X @ v, v)
    return X, {frozenset(place.tolist()) for place in places}


Recovered = tuple[str, tuple[float, float], tuple[float, float], float]


def recovery(repeats: int) -> list[Recovered]:
    """(method, measured for 50 and 5 samples, printed for both, CPU seconds)."""
    hits = {name: [0, 0] for name, *_ in METHODS}
    spent = {name: 0.0 for name, *_ in METHODS}
    for column, m in enumerate((50, 5)):
        rng = np.random.default_rng(m)
        for _ in range(repeats):
            X, truth = sample(rng, m)
            cov = covariance_of_data(X, center=False)[0]
            problem = Problem(cov, (SIZE, SIZE), supports="free", objective="adjusted")
            for name, method, options, *_ in METHODS:
                start = time.process_time()
                found = get_method(method).run(
                    problem, Options(rank=2), deflation="projection", **options
                )
                spent[name] += time.process_time() - start
                seen = {frozenset(c.support.tolist()) for c in found.components}
                hits[name][column] += seen == truth
    return [
        (name, (hits[name][0] / repeats, hits[name][1] / repeats), (many, few), spent[name])
        for name, _, _, many, few in METHODS
    ]


def spiked() -> None:
    repeats = int(os.environ.get("SPARCIPAL_REPEATS", "200"))
    say(f"Two spikes of 10 features among 500, {repeats} repetitions: both supports found")
    say("  method                50 samples (printed)   5 samples (printed)   CPU s")
    for name, (a, b), (many, few), spent in recovery(repeats):
        say(f"  {name:20s} {a:8.2f} ({many:.2f}) {b:18.2f} ({few:.2f}) {spent:14.1f}")


# Weaker spikes among fewer features: population variances 5 and 4 in noise of variance 1.
POPULATION = {"features": 100, "size": 5, "values": (5.0, 4.0)}
REPEATS = 20


def against_n() -> None:
    """How often the supports of the population are found from n samples, and how stable they are.

    `stable` is what came back of the answer in halves of the rows (`sparcipal.stability`), the mean
    over the first repetitions: it needs no truth, and should tell when the answer is not it.
    """
    from sparcipal import sparse_pca, stability

    p, size, values = (POPULATION[name] for name in ("features", "size", "values"))
    truth = [set(range(j * size, (j + 1) * size)) for j in range(len(values))]
    say(f"{len(values)} spikes of {size} among {p} features, {REPEATS} repetitions")
    say("     n   both found   features found   stable")
    for n in (10, 20, 40, 80, 160):
        both, share, stable = 0, 0.0, []
        for seed in range(REPEATS):
            rng = np.random.default_rng((n, seed))
            X = rng.standard_normal((n, p))
            for j, value in enumerate(values):
                part = X[:, j * size : (j + 1) * size]
                part += np.outer(rng.standard_normal(n), np.full(size, ((value - 1) / size) ** 0.5))
            ask = {"n_components": len(values), "n_nonzero_coefs": size, "certify": False}
            found = [set(support.tolist()) for support in sparse_pca(X, **ask).supports]
            common = np.array([[len(a & b) for b in truth] for a in found])
            both += all(t in found for t in truth)
            share += max(np.trace(common), np.trace(common[::-1])) / (size * len(values))
            if seed < 3:
                stable.append(float(stability(X, n_resamples=10, **ask).jaccard.mean()))
        found_share, returns = share / REPEATS, float(np.mean(stable))
        say(f"  {n:4d} {both / REPEATS:12.2f} {found_share:16.2f} {returns:8.2f}")
