"""Bounds from a low-rank sketch."""
