"""PCA with few nonzero loadings, and a proof of how good they are."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module that defines it, loaded on first use: importing the package costs
# nothing.
_EXPORTS = {
    "Certificate": "result",
    "Gram": "gram",
    "Moments": "moments",
    "Result": "result",
    "Screened": "screen",
    "SparsePCA": "estimator",
    "Status": "result",
    "Table": "read",
    "compare": "compare",
    "read": "read",
    "sparse_path": "path",
    "sparse_pca": "pipeline",
    "verify": "verify",
}

__all__ = sorted(_EXPORTS)

if TYPE_CHECKING:
    from .compare import compare as compare
    from .estimator import SparsePCA as SparsePCA
    from .gram import Gram as Gram
    from .moments import Moments as Moments
    from .path import sparse_path as sparse_path
    from .pipeline import sparse_pca as sparse_pca
    from .read import Table as Table
    from .read import read as read
    from .result import Certificate as Certificate
    from .result import Result as Result
    from .result import Status as Status
    from .screen import Screened as Screened
    from .verify import verify as verify


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_EXPORTS[name]}", __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


class _Package(ModuleType):
    """`sparcipal.read` and `sparcipal.verify` stay functions when the modules so named are
    loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _EXPORTS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
