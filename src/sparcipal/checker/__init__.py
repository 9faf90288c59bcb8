"""Rechecks a saved result against the data, with plain NumPy and no code of the solver."""

from .result import Verification, verify

__all__ = ["Verification", "verify"]
