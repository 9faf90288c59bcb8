"""Improve components with overlapping supports that are orthogonal to one another.

One component at a time is replaced while the others stay. On a given support S the best unit vector
that is orthogonal to the others is an eigenvector in the null space of their rows in S. Supports
come from the search without the constraint, and from exchanges of single features. The objective is
the adjusted variance of all components (Zou, Hastie & Tibshirani 2006): x explains x'Bx beyond the
others, where B is the Schur complement of the covariance on their directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..problem.components import variances
from ..problem.covariance import Covariance
from ..problem.problem import Component, Options, Problem
from .deflation import beyond

SWEEPS = 4  # over all components
LEAVING, ENTERING = 4, 6  # features that are tried in an exchange
EXCHANGES = 30  # of one component in one sweep
RANK = 1e-10  # singular values below this fraction of the largest count as zero

Search = Callable[[Covariance, int], np.ndarray]


def ascend_orthogonally(
    problem: Problem, starts: Sequence[Sequence[Component]], search: Search, options: Options
) -> tuple[Component, ...]:
    """Return the best orthogonal components from any of the starts; one start is orthogonal.

    `search(cov, s)` returns a good support of s features for one component, without constraints.
    """
    ascent = _Ascent(problem, search)
    possible = [ascent.made_orthogonal(start) for start in starts]
    ends = [ascent.run(start, options) for start in possible if start is not None]
    return max(ends, key=ascent.value)


class _Ascent:
    def __init__(self, problem: Problem, search: Search) -> None:
        self.problem, self.search = problem, search
        self.cov = problem.covariance

    def value(self, components: Sequence[Component]) -> float:
        return float(variances(self.problem, tuple(components)).sum())

    def made_orthogonal(self, components: Sequence[Component]) -> tuple[Component, ...] | None:
        """Make each component orthogonal to those before on its own support; None if impossible."""
        done: list[Component] = []
        for component in components:
            found = self._on(self.cov, component.support, self._basis(done))
            if found is None:
                return None
            done.append(found)
        return tuple(done)

    def run(self, components: tuple[Component, ...], options: Options) -> tuple[Component, ...]:
        best, value = list(components), self.value(components)
        for _ in range(SWEEPS):
            before = value
            for j in range(len(best)):
                if options.monitor.stopped:
                    return tuple(best)
                for new in self._replacements(best, j):
                    trial = [*best[:j], new, *best[j + 1 :]]
                    now = self.value(trial)
                    if now > value * (1.0 + 1e-10):
                        best, value = trial, now
            if value <= before * (1.0 + 1e-9):
                break
        return tuple(best)

    def _replacements(self, components: list[Component], j: int) -> list[Component]:
        others = components[:j] + components[j + 1 :]
        basis, rest = self._basis(others), beyond(self.cov, others)
        s = self.problem.cardinalities[j]
        supports = [components[j].support, self.search(rest, s)]
        found = [self._on(rest, support, basis) for support in supports]
        return [self._exchanged(rest, one, basis, s) for one in found if one is not None]

    def _exchanged(
        self, rest: Covariance, component: Component, basis: np.ndarray, s: int
    ) -> Component:
        """Exchange single features while the value grows."""
        value = self._worth(rest, component)
        for _ in range(EXCHANGES):
            image = rest.matvec(component.vector(rest.n_features))
            image -= basis @ (basis.T @ image)
            image[component.support] = 0.0
            enter = np.argsort(-np.abs(image), kind="stable")[:ENTERING]
            weak = component.support[np.argsort(np.abs(component.weights))[:LEAVING]]
            full = component.support.size >= s
            tried = []
            for b in enter.tolist():
                for a in weak.tolist() if full else [-1]:
                    support = np.sort(np.append(component.support[component.support != a], b))
                    one = self._on(rest, support, basis)
                    if one is not None:
                        tried.append((self._worth(rest, one), one))
            best, one = max(tried, key=lambda pair: pair[0], default=(value, component))
            if best <= value * (1.0 + 1e-10):
                break
            value, component = best, one
        return component

    @staticmethod
    def _worth(rest: Covariance, component: Component) -> float:
        block = rest.submatrix(component.support)
        return float(component.weights @ block @ component.weights)

    def _basis(self, components: Sequence[Component]) -> np.ndarray:
        """Return the vectors of the components, which are orthonormal already, as (p, m)."""
        p = self.cov.n_features
        if not components:
            return np.zeros((p, 0))
        return np.column_stack([component.vector(p) for component in components])

    @staticmethod
    def _on(rest: Covariance, support: np.ndarray, basis: np.ndarray) -> Component | None:
        """Return the best vector on the support that is orthogonal to the basis, or None."""
        rows = basis[support]
        _, sizes, right = np.linalg.svd(rows.T, full_matrices=True)
        rank = int(np.count_nonzero(sizes > RANK))
        free = right[rank:].T  # (s, s - rank)
        if free.shape[1] == 0:
            return None
        block = rest.submatrix(support)
        lead = np.linalg.eigh(free.T @ (0.5 * (block + block.T)) @ free)[1][:, -1]
        x = free @ lead
        return Component(support, x / np.linalg.norm(x))
