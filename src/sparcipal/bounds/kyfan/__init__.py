"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst."""

from .bound import kyfan_bound

__all__ = ["kyfan_bound"]
