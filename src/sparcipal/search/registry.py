"""The ways to search for components: one file per method, all with the interface of base.py."""

from __future__ import annotations

import importlib

from ..problem.base import Method

# Name of the method -> the module that defines `METHOD`; loaded when asked for.
METHODS = {
    "auto": "auto",
    "bipartite": "bipartite",
    "threshold": "threshold",
    "tpower": "tpower",
    "em": "em",
    "gpower": "gpower",
    "greedy": "greedy",
    "nspca": "nspca",
    "spca": "spca",
    "dspca": "dspca",
    "dspca-first-order": "dspca_first_order",
    "spannogram": "spannogram",
    "enumerate": "enumerate",
}


def get_method(name: str) -> Method:
    """The method of that name; ValueError lists the names there are."""
    if name not in METHODS:
        raise ValueError(f"method={name!r} is unknown; choose one of {', '.join(sorted(METHODS))}")
    method: Method = importlib.import_module(f".methods.{METHODS[name]}", __package__).METHOD
    return method
