"""Rechecks a saved result against the data, with plain NumPy and no code of the solver."""

from .budget import Budget
from .result import Verification, verify

__all__ = ["Budget", "Verification", "verify"]
