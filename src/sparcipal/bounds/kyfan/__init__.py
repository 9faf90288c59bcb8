"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst."""

from .bound import kyfan_bound
from .question import JointQuestion

__all__ = ["JointQuestion", "kyfan_bound"]
