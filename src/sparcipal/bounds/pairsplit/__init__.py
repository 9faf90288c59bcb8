"""The pair split; statement and proof: docs/methods/pairsplit.rst."""

from .certificate import Part, Split, SplitMatrix, prove_below, proven_bound, split_matrix
from .optimise import Optimiser
from .starts import best_start

__all__ = [
    "Optimiser",
    "Part",
    "Split",
    "SplitMatrix",
    "best_start",
    "prove_below",
    "proven_bound",
    "split_matrix",
]
