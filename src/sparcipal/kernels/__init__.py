"""Compiled loops: arrays in, arrays out. The caller allocates; no kernel file imports another."""

from . import storage as storage
