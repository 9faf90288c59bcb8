"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst."""

from .bound import EFFORTS, kyfan_bound
from .optimise import SMALL
from .question import JointAnswer, JointQuestion

__all__ = ["EFFORTS", "SMALL", "JointAnswer", "JointQuestion", "kyfan_bound"]
