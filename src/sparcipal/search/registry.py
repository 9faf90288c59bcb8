"""The names of `method=` are listed here; methods/<name>.py holds the record `METHOD` of each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .method import Method

# Lists for users show this order. A method's file is loaded on demand, so that the command line
# shows these names without delay.
METHODS = (
    "auto",
    "bipartite",
    "threshold",
    "tpower",
    "em",
    "gpower",
    "greedy",
    "nspca",
    "spca",
    "dspca",
    "spannogram",
    "enumerate",
)


def get_method(name: str) -> Method:
    """Return the method of that name, or raise a ValueError that lists the names."""
    if name not in METHODS:
        raise ValueError(f"method={name!r} is unknown; choose one of {', '.join(sorted(METHODS))}")
    method: Method = importlib.import_module(f".methods.{name}", __package__).METHOD
    return method


def sharing_methods() -> list[str]:
    """Return the names of methods that can share a total number of nonzeros among components."""
    return [name for name in METHODS if get_method(name).shares_totals]


def anchoring_methods() -> list[str]:
    """Return the names of methods that can be made to use given features."""
    return [name for name in METHODS if get_method(name).anchors]
