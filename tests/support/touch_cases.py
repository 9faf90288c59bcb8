"""Random touch certificates, and the judge that compares them with all supports, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from sparcipal.bounds.pairsplit import Split
from sparcipal.bounds.touch import Strata
from sparcipal.problem.covariance import Covariance, covariance_of, covariance_of_data

from .oracle import exact_matrix, proves_below
from .proof_cases import matrix

# relative to the largest value outside the core: levels below it must be refused
FACTORS = (0.5, 0.99, 1 - 1e-9, 1 - 1e-12, 1.0, 1 + 1e-9, 1.001, 1.05, 1.5, 4.0)


def random_split(rng: np.random.Generator, block: np.ndarray) -> Split:
    """Any U and R are a certificate; near clip(A) they are a good one."""
    n = len(block)
    upper = np.triu_indices(n, 1)
    largest = float(np.abs(block).max(initial=0.0))
    rho = rng.choice([0.0, 0.3, 1.0, 10.0]) * largest
    u = np.clip(block, -rho, rho) + largest * rng.choice([0.0, 0.1]) * rng.standard_normal((n, n))
    r = rng.choice([0.0, 0.5, 5.0]) * rng.standard_normal((n, n))
    return Split.rounded(np.arange(n), upper, u[upper], r[upper])


def random_covariance(rng: np.random.Generator) -> Covariance:
    """A given matrix, or data, in which variances alone clear features; with copies and zeros."""
    if rng.random() < 0.5:
        return covariance_of(matrix(rng))
    p = int(rng.integers(2, 9))
    X = rng.standard_normal((int(rng.integers(2, 12)), p)) * rng.choice([0.01, 0.2, 1.0, 3.0], p)
    if rng.random() < 0.5:
        X[:, rng.integers(p, size=3)] = X[:, [rng.integers(p)]]  # copies count each on their own
    X[:, rng.random(p) < 0.1] = 0.0
    return covariance_of_data(X, center=bool(rng.random() < 0.5))[0]


def one_touch_case(seed: int) -> list[str]:
    """A random core, split and levels below and above the truth; which accepted levels are false.

    Features that every support contains are there in a third of the cases.
    """
    rng = np.random.default_rng(seed)
    cov = random_covariance(rng)
    A, p = cov.dense(), cov.n_features
    A = (A + A.T) / 2
    if p < 2 or not A.any():
        return []
    s, nonnegative = int(rng.integers(1, p + 1)), bool(rng.random() < 0.4)
    core = np.sort(rng.choice(p, size=int(rng.integers(1, p)), replace=False))
    most = min(s - 1, core.size) if rng.random() < 0.33 else 0
    forced = np.sort(rng.choice(core, size=int(rng.integers(0, most + 1)), replace=False))
    strata = Strata(cov, s, nonnegative, core, random_split(rng, A[np.ix_(core, core)]), forced)
    outside = leaving(A, s, set(core.tolist()), set(forced.tolist()), nonnegative)
    true = max(outside.values(), default=0.0)
    exact, wrong = exact_matrix(A), []
    for factor in rng.permutation(FACTORS).tolist():
        shaping = float(rng.choice([0.0, 1e8, np.inf]))
        found = strata.attempt(factor * max(true, 1e-9), shaping).touch
        if found is None or not outside:
            continue
        covered = [tau for g in found.groups for tau in range(g.first, g.last + 1)]
        if covered != list(range(1, max(s - max(forced.size - 1, 0), 1))):
            wrong.append(f"pads for {covered} of {s} features, {forced.size} of them given")
        for members, value in outside.items():
            near = value > found.level * (1 - 1e-9)
            if near and not proves_below(exact, members, Fraction(found.level)):
                wrong.append(f"{members} explains more than the level {found.level!r}")
    return wrong


def leaving(
    A: np.ndarray, s: int, core: set[int], forced: set[int], nonnegative: bool
) -> dict[tuple[int, ...], float]:
    """The largest eigenvalue of every support that leaves the core; for x >= 0 of those with a
    positive eigenvector, as other maximisers are met on smaller supports."""
    out = {}
    for size in range(max(1, len(forced)), s + 1):
        for members in combinations(range(len(A)), size):
            if core.issuperset(members) or not forced.issubset(members):
                continue
            w, Q = np.linalg.eigh(A[np.ix_(members, members)])
            lead = Q[:, -1]
            if nonnegative and lead.min() < -1e-9 and lead.max() > 1e-9:
                continue
            out[members] = float(w[-1])
    return out
