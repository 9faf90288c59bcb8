"""Bound "common"; statement and proof: docs/methods/common.rst."""

from .bound import common_bound

__all__ = ["common_bound"]
