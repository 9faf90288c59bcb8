"""Eigenvalues, an optimiser, rounding margins and threads."""
