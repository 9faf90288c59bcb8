"""Bound "configuration"; statement and proof: docs/methods/configuration.rst."""
