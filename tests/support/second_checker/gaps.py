"""Tables with missing entries; docs/missing.rst."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

from .algebra import psd, root
from .reading import EPS, Matrix, exact, need, vector


def treated(rows: list[list[float]], weights, rule: str | None):
    """Rows and weights without gaps: rows left out, or entries filled."""
    if rule is None:
        return rows, weights
    need(rule in ("rows", "mean", "median"), "no such rule for missing entries")
    if rule == "rows":
        whole = [i for i, row in enumerate(rows) if not any(map(math.isnan, row))]
        return [rows[i] for i in whole], weights and [weights[i] for i in whole]
    fill = [stands_for(column, weights, rule) for column in zip(*rows)]
    return [[f if math.isnan(x) else x for x, f in zip(row, fill)] for row in rows], weights


def stands_for(column, weights, rule: str) -> float:
    """The mean or the median of what is there."""
    there = [i for i, x in enumerate(column) if not math.isnan(x)]
    need(bool(there), "a column without an entry")
    if rule == "median":
        return statistics.median(column[i] for i in there)
    if weights is None:
        return math.fsum(column[i] for i in there) / len(there)
    mass = math.fsum(weights[i] for i in there)
    return math.fsum(weights[i] * column[i] for i in there) / mass


def paired(document: dict, rows: list[list[float]], weights) -> Matrix:
    """The matrix of a result for pairs: the nearest one to C that is positive semidefinite.

    M is the nearest if and only if M and M - C are positive semidefinite and their product has
    trace zero; here up to what rounding adds to an entry of C, for p features together.
    """
    settings, repair = document["settings"], document["certificate"]["repair"]
    n, p = len(rows), document["n_features"]
    need(n == document["n_samples"] and all(len(row) == p for row in rows), "another table")
    weights = [exact(w) for w in weights] if weights else [Fraction(1)] * n
    need(all(w >= 0 for w in weights), "a negative weight")
    floats = [float(w) for w in weights] if settings["sample_weight"] else None
    mean = [Fraction(0)] * p
    if settings["center"]:
        mean = [Fraction(stands_for(column, floats, "mean")) for column in zip(*rows)]
    columns = [
        {i: exact(row[j]) - mean[j] for i, row in enumerate(rows) if not math.isnan(row[j])}
        for j in range(p)
    ]
    size = [max(abs(x + mean[j]) for x in columns[j].values()) for j in range(p)]
    reach = [max(map(abs, columns[j].values())) for j in range(p)]
    C, wrong = [[[Fraction(0)] * p for _ in range(p)] for _ in range(2)]
    for i in range(p):
        for j in range(p):
            both = columns[i].keys() & columns[j].keys()
            mass = sum(weights[t] for t in both)
            need(mass > 0, "two features share no row")
            products = [weights[t] * columns[i][t] * columns[j][t] for t in both]
            C[i][j] = sum(products) / mass
            wrong[i][j] = (4 * n + 64) * EPS * sum(map(abs, products)) / mass
            wrong[i][j] += 20 * EPS * (size[i] * reach[j] + reach[i] * size[j])
    for j, said in enumerate(vector(document["mean"], p)):
        need(abs(said - mean[j]) <= 16 * EPS * size[j], "a mean")
    by = [root(C[j][j]) if settings["scale"] and C[j][j] else Fraction(1) for j in range(p)]
    for j, said in enumerate(vector(document["scale"], p)):
        off = min(root(wrong[j][j]), wrong[j][j] / by[j]) if settings["scale"] else Fraction(0)
        need(abs(said - by[j]) <= (4 * n + 64) * EPS * by[j] + off, "a scale")
    span = range(p)
    M = [vector(row, p) for row in repair["matrix"]]
    need(len(M) == p and [list(row) for row in zip(*M)] == M, "the matrix of a repair")
    C, wrong = ([[B[i][j] / (by[i] * by[j]) for j in span] for i in span] for B in (C, wrong))
    D = [[M[i][j] - C[i][j] for j in span] for i in span]
    near = p * 3 * sum(map(sum, wrong))
    if definite(C, wrong):
        fits = all(abs(D[i][j]) <= 2 * wrong[i][j] for i in span for j in span)
        need(fits and exact(repair["moved"]) <= near, "not the covariances of the pairs")
        return repair["matrix"]
    e = near / p + 64 * p * EPS * sum(M[i][i] for i in span)
    kept = set(span) - set(settings.get("exclude") or ())
    least = min(C[i][i] for i in kept if C[i][i])
    need(e <= p * least / 10**6, "rounding hides a feature")
    for H in (M, D):
        need(psd([[x + e * (i == j) for j, x in enumerate(H[i])] for i in span]), "not the nearest")
    inner = sum(M[i][j] * D[i][j] for i in span for j in span)
    need(abs(inner) <= e * sum(M[i][i] for i in span), "not the nearest")
    moved = root(sum(x * x for row in D for x in row))
    whole = root(sum((M[i][j] - D[i][j]) ** 2 for i in span for j in span))
    near = p * e + moved / 10**6
    need(abs(exact(repair["moved"]) - moved) <= near, "the repair moved otherwise")
    need(abs(exact(repair["relative"]) * whole - moved) <= near, "the size of the repair")
    return repair["matrix"]


def definite(C: Matrix, wrong: Matrix) -> bool:
    """Whether C is positive definite beyond rounding, in the units of each feature."""
    moving = [j for j in range(len(C)) if C[j][j]]
    blur = 2 * sum(max(wrong[i][j] ** 2 / (C[i][i] * C[j][j]) for j in moving) for i in moving)
    own = [
        [C[i][j] - (root(blur) * len(C) * C[i][i] if i == j else 0) for j in moving] for i in moving
    ]
    return psd(own)
