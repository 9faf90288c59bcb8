"""Rows of the covariance of all features of a screened table, read from the data once more.

The rule "rows" of docs/methods/dropped.rst asks for covariances of dropped features. They are
summed about numbers near the means, some rows of the covariance by each reading of the data, and
their sizes are rounded up: nothing is left of errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .budget import Budget, Refused
from .covariance import EPS, CheckedCovariance
from .sums import weighted
from .tables import Source

ENTRIES = 1 << 20  # of a dense block that are worked on together
LOST = 1e-3  # relative errors of deviations above this are not carried through a quotient


@dataclass(frozen=True)
class Reading:
    """The data, and what was found when they were read for the first time."""

    source: Source
    weights: np.ndarray | None
    center: bool
    scale: bool
    about: np.ndarray  # near the means
    divisor: np.ndarray  # of every column: its deviation, or the root of the unit
    n: int
    weight: float
    mean: np.ndarray


class EveryCovariance(CheckedCovariance):
    """All features, of which rows are read when they are asked for.

    `inner` knows the features `kept`; `variances` are rounded up.
    """

    def __init__(
        self,
        inner: CheckedCovariance,
        kept: np.ndarray,
        variances: np.ndarray,
        inert: np.ndarray,
        reading: Reading,
        budget: Budget,
    ) -> None:
        self.inner, self.kept, self.diagonal, self.inert = inner, kept, variances, inert
        self.unit, self.error_unit, self.weights = inner.unit, 0.0, np.zeros(variances.size)
        self.given, self.shifts = False, {}
        self._reading, self._budget = reading, budget
        self._held, self._strip = np.empty(0, dtype=np.intp), np.empty((0, variances.size))

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        """Return entries among kept features as they are, those of other rows rounded up in
        size."""
        if cols is None:
            return self.inner.submatrix(np.searchsorted(self.kept, rows))
        if not np.array_equal(rows, self._held):
            self._held, self._strip = rows, self._read(rows)
        return self._strip[:, cols]

    def _read(self, features: np.ndarray) -> np.ndarray:
        known, p = self._reading, self.p
        self._budget.memory(24.0 * features.size * p, "rows of the covariance of all features")
        self._budget.work(0.2 * known.n * p * (features.size + 50), "rows of all features")
        cross, sums, mass = _summed(known, features)
        mean = sums / known.weight
        A = cross / known.weight - np.outer(mean[features], mean) * known.center
        error = (6 * known.n + 40) * EPS
        mass = mass / known.weight
        _check_same(known, mean, error * np.sqrt(mass))
        # A quotient has the errors of the entry and of the two deviations.
        size, error = (np.maximum(mass, 1.0), 2 * error) if known.scale else (np.sqrt(mass), error)
        off = error * np.outer(size[features], size)
        most = np.sqrt(np.outer(self.diagonal[features], self.diagonal)) * (1 + 4 * EPS)
        top = np.minimum(np.abs(A) + off, most)
        if known.scale:
            top = np.where(error * np.maximum.outer(size[features], size) > LOST, most, top)
        top[self.inert[features]], top[:, self.inert] = 0.0, 0.0
        return np.where(-off <= A, top, -top)


def _check_same(known: Reading, mean: np.ndarray, error: np.ndarray) -> None:
    """Refuse data that give other rows than at first, as far as means can tell."""
    before = (known.mean - known.about) / known.divisor if known.center else mean
    slack = 8 * error + 8 * EPS * (np.abs(known.mean) + np.abs(known.about)) / known.divisor
    if not (np.abs(mean - before) <= slack + 1e-290).all():
        raise Refused("the data give other rows than when they were read first")


def _summed(known: Reading, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of products of these columns with all, of all columns and of their
    squares."""
    p = known.about.size
    cross, sums, mass = np.zeros((features.size, p)), np.zeros(p), np.zeros(p)
    rows, step = 0, max(1, ENTRIES // p)
    for block, share in weighted(known.source, known.weights):
        rows += block.shape[0]
        for first in range(0, block.shape[0], step):
            part = block[first : first + step]
            z = (part.toarray() if sp.issparse(part) else part).astype(np.float64)
            z = (z - known.about) / known.divisor
            w = z if share is None else z * share[first : first + step, None]
            cross += w[:, features].T @ z
            sums += w.sum(axis=0)
            mass += (w * z).sum(axis=0)
    if rows != known.n:
        raise Refused("the data give other rows than when they were read first")
    return cross, sums, mass
