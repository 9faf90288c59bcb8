"""Bound "labels"; statement and proof: docs/methods/labels.rst."""

from .bound import labels_bound

__all__ = ["labels_bound"]
