"""The question: which components, with how many nonzeros, under which constraints."""

from __future__ import annotations

from dataclasses import dataclass

from .covariance import Covariance


@dataclass(frozen=True)
class Problem:
    """Find components x_1..x_k, x_j a unit vector with at most cardinalities[j] nonzeros.

    With `total`, all components together have at most so many; each has at least one.

    With disjoint supports the value is the sum of x_j' A x_j. With free supports it is the adjusted
    variance: each component counts only what those before it have not explained.

    `dropped` is the largest variance among features that were screened out and are not in the
    covariance: a proof that can price it costs nothing more.
    """

    covariance: Covariance
    cardinalities: tuple[int, ...]
    nonnegative: bool = False
    disjoint: bool = True
    total: int | None = None
    dropped: float = 0.0

    @property
    def k(self) -> int:
        return len(self.cardinalities)

    @property
    def s_max(self) -> int:
        return max(self.cardinalities)

    @property
    def n_nonzero(self) -> int:
        """Nonzeros of all components together, at most."""
        return sum(self.cardinalities) if self.total is None else self.total
