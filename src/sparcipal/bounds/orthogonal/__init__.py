"""Bound "orthogonal"; statement and proof: docs/methods/orthogonal.rst."""

from .bound import orthogonal_bound

__all__ = ["orthogonal_bound"]
