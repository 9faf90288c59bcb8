"""Oracles, judges and hostile input that tests and benchmarks share."""
