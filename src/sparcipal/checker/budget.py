"""How a claim is refused, and what a replay may cost before it is."""

from __future__ import annotations

import math
from numbers import Real

WORK = 1e12  # operations, of about a nanosecond each
MEMORY = 4 * 2**30  # bytes


class Refused(Exception):
    """The claim or its proof is wrong; the message says where and why."""


class Missing(Exception):
    """The claim may be right, but what would prove it is not there."""


def require(condition: bool, reason: str) -> None:
    """Refuse, with the reason, what does not hold."""
    if not condition:
        raise Refused(reason)


def choices(n: int, q: int) -> float:
    """Count the sets of q among n; infinity beyond 1e250, without working that out."""
    size = math.lgamma(n + 1) - math.lgamma(q + 1) - math.lgamma(n - q + 1) if q <= n else 0.0
    return float(math.comb(n, q)) if size < 575.0 else math.inf


class Budget:
    """What a replay may cost: elementary operations and bytes, counted before they are spent.

    A file of a few bytes can name a computation of days. Every loop whose length a file decides
    is charged here first, over the whole document.
    """

    def __init__(self, work: float = WORK, memory: float = MEMORY) -> None:
        for name, limit in (("work", work), ("memory", memory)):
            if not isinstance(limit, Real) or isinstance(limit, bool):
                raise TypeError(f"the budget of {name} is a {type(limit).__name__}, not a number")
            if not limit > 0:
                raise ValueError(f"{name} must be positive, got {limit!r}")
        self.most_work, self.most_memory = float(work), float(memory)
        self.spent, self._each = 0.0, 1.0

    def counting(self, nanoseconds: float) -> Budget:
        """Return the same budget, for numbers an operation with which takes so long."""
        self._each = nanoseconds
        return self

    def work(self, operations: float, what: str) -> None:
        """Count operations that are going to be done, as those of a nanosecond they stand for."""
        self.spent += operations * self._each
        if not self.spent <= self.most_work:
            raise Refused(
                f"{what}: the replay takes {self.spent:.2g} operations or more, above the budget "
                f"of {self.most_work:.2g}; if you trust the file that far, pass "
                f"budget={2 * self.spent:.0e}"
            )

    def memory(self, size: float, what: str) -> None:
        """Check the bytes that are going to be held at a time."""
        if not size <= self.most_memory:
            raise Refused(
                f"{what}: the replay needs {size / 2**30:.3g} GiB, above the budget of "
                f"{self.most_memory / 2**30:.3g} GiB; if you trust the file that far, pass "
                f"budget=Budget(memory={2 * size:.0e})"
            )
