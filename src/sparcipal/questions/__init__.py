"""Questions that follow an answer: how many, what else, how stable, what changed, and why."""

from ..lazy import modules_of

__getattr__, __dir__ = modules_of(__name__, ("choice", "growth", "resampling"))
