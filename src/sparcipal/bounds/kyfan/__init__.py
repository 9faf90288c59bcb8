"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst."""

from .bound import EFFORTS, kyfan_bound
from .question import JointAnswer, JointQuestion

__all__ = ["EFFORTS", "JointAnswer", "JointQuestion", "kyfan_bound"]
