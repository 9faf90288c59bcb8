"""Bound "tree"; statement and proof: docs/methods/tree.rst."""
