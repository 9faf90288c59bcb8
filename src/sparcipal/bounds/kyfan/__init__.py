"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst."""

from .bound import kyfan_bound
from .question import JointAnswer, JointQuestion

__all__ = ["JointAnswer", "JointQuestion", "kyfan_bound"]
