"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst."""

from .bound import adjusted_bound, ridge_bound

__all__ = ["adjusted_bound", "ridge_bound"]
