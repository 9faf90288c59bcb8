"""The pair-split bound for the sum over several components."""

from .bound import kyfan_bound

__all__ = ["kyfan_bound"]
