"""A second checker, written from the documents alone, in exact rationals.

It shares nothing with the library: it reads the JSON text of a result as docs/proof_format.rst
describes it, forms the covariance of the data in fractions, and proves what is claimed by the
statements of docs/methods. Positive semidefiniteness is decided by an elimination LDL'. It is slow
and meant for a dozen features. NumPy finds approximate eigenvectors; nothing rests on them.

All claims are proved for the exact covariance at the level that is claimed to the user, so that
no margin for rounding appears anywhere.
"""

from . import cheap, duals, labels, pairsplit, prices, shared, sketches, tree  # noqa: F401
from .answers import check_alternatives
from .claim import check
from .proving import prove
from .question import question
from .reading import Refused, decode, exact

__all__ = ["Refused", "check", "check_alternatives", "decode", "exact", "prove", "question"]
