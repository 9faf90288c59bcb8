"""Bound "tree"; statement and proof: docs/methods/tree.rst.

A question holds the parameters and the budget of one branch and bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...problem.monitor import Monitor

# Work is counted in units of about a nanosecond of one core; it does not depend on the clock.
WORK = {"fast": 4e9, "full": np.inf}
MAX_NODES = {"fast": 2_000, "full": 1_000_000}


@dataclass(frozen=True)
class TreeQuestion:
    """Options of the proof that maximises lambda_max(A_S) - prices(S) over nonempty |S| <= s.

    Attributes
    ----------
    nonnegative : bool
        Maximise x'Ax over unit x >= 0 with support in S instead of lambda_max(A_S).
    prices : ndarray (p,), optional
        The price of each feature; a negative one is a reward.
    incumbent : (support, value), optional
        A known support; its value is recomputed, never trusted.
    tol : float
        Gap, relative to max(|value|, max |A|), that counts as optimal; at least 1e-9.
    max_nodes : int, optional
    monitor : Monitor
    effort : "fast", "full" or a number
        The budget: a few seconds, no limit, or so many units of work.
    keep_log : bool
    start : Split or Touch, optional
        A certificate to begin with: `again` of a proof for another s. For `prove`, a Split on all
        features and for A / power_of_two(max |A|).
    pads : ndarray (p,), optional
        Supports may also contain features outside A; each of them is charged pads[i] to row i at
        most, and the caller takes care of the rows outside.
    enough : float
        The search ends once a support of a larger value is met; its status is "enough" then.
    forced : ndarray, optional
        Only supports that contain these features count, at most s of them; the loadings on them
        may be zero.
    known : float
        A bound that is known: the default effort does not look for levels that are not lower.
    level : float, optional
        List all supports of a larger value instead of proving one optimal; see listing.py.
    most : int
        The list ends once it has more supports than this; those met together go on it together.
    limit : float
        Units of work that the default effort may take on a core and the tree inside it.
    share : float
        Of the work of a branch and bound, what one inside a core may take.
    n_jobs : int
        Subtrees of a long proof that are searched at once; the proof does not depend on it.
    """

    nonnegative: bool = False
    prices: np.ndarray | None = None
    incumbent: tuple[np.ndarray, float] | None = None
    tol: float = 1e-6
    max_nodes: int | None = None
    monitor: Monitor = field(default_factory=Monitor)
    effort: str | float = "full"
    keep_log: bool = True
    start: Any = None
    pads: np.ndarray | None = None
    enough: float = np.inf
    forced: np.ndarray | None = None
    known: float = np.inf
    level: float | None = None
    most: int = 1000
    limit: float = np.inf
    share: float = 1.0
    n_jobs: int = 1

    @property
    def anchors(self) -> np.ndarray:
        """The forced features, increasing."""
        given = () if self.forced is None else self.forced
        return np.unique(np.asarray(given, dtype=np.intp))

    @property
    def _named(self) -> str:
        return self.effort if isinstance(self.effort, str) else "full"

    @property
    def work(self) -> float:
        """The budget in units of work."""
        if self._named not in WORK:
            raise ValueError(f"effort must be 'fast', 'full' or a number, got {self.effort!r}")
        return WORK[self.effort] if isinstance(self.effort, str) else float(self.effort)

    @property
    def most_nodes(self) -> int:
        return MAX_NODES[self._named] if self.max_nodes is None else self.max_nodes
