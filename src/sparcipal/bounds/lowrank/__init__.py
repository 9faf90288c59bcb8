"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst."""
