"""Bound "tree"; statement and proof: docs/methods/tree.rst.

A node with few supports is settled by looking at all of them.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from ..pairsplit import Part

FEW = 12  # supports that are looked at one by one rather than bounded


def few_supports(part: Part, costly: bool, few: int = FEW) -> list[np.ndarray] | None:
    """Return all supports that have to be looked at, or None if there are more than `few`.

    Where no feature costs anything, a larger support is never worse: only the largest count.
    """
    forced, free = np.flatnonzero(part.forced), np.flatnonzero(~part.forced)
    room = min(part.s - forced.size, free.size)
    if not costly:
        if comb(free.size, room) > max(few, free.size if room == 1 else 0):
            return None
        sizes = [room]
    else:
        if sum(comb(free.size, q) for q in range(room + 1)) > few:
            return None
        sizes = list(range(room + 1))
    supports = [
        np.sort(np.append(forced, np.array(chosen, dtype=np.intp)))
        for q in sizes
        for chosen in combinations(free, q)
    ]
    return [support for support in supports if support.size]
