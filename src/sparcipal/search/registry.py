"""The names of `method=`. A method is a record `METHOD` in the file of its name in methods/."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .method import Method

# In the order in which lists for users show them. A method's file is loaded when it is asked for:
# the command line shows these names in the time of a --help.
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
    """The method of that name; ValueError lists the names there are."""
    if name not in METHODS:
        raise ValueError(f"method={name!r} is unknown; choose one of {', '.join(sorted(METHODS))}")
    method: Method = importlib.import_module(f".methods.{name}", __package__).METHOD
    return method


def sharing_methods() -> list[str]:
    """The methods that can share a total number of nonzeros among components."""
    return [name for name in METHODS if get_method(name).shares_totals]
