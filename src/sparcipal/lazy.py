"""Modules of a package that the documents name: attributes of it, loaded on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def modules_of(
    package: str, names: tuple[str, ...]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package with these modules."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f".{name}", package)

    return get, lambda: sorted({*vars(sys.modules[package]), *names})
