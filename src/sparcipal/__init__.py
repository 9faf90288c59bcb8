"""PCA with few nonzero loadings, and a proof of how good they are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module that defines it, loaded on first use: importing the package costs
# nothing.
_EXPORTS = {
    "Alternatives": "problem.answers",
    "Certificate": "problem.result",
    "Explanation": "questions.explanation",
    "Gram": "data.products",
    "Moments": "data.moments",
    "Result": "problem.result",
    "Screened": "data.screening",
    "SparsePCA": "estimator",
    "Sums": "data.sums",
    "Status": "problem.result",
    "Table": "data.table",
    "alternatives": "questions.nearby",
    "choose": "questions.choice",
    "compare": "comparison",
    "explain": "questions.explanation",
    "read": "data.inputs",
    "sparse_path": "path",
    "sparse_pca": "fit",
    "stability": "questions.resampling",
    "trends": "questions.windows",
    "update": "questions.growth",
    "verify": "checker",
    "write_report": "report.page",
}

# Modules that the documents name, such as `sparcipal.report.plots`; loaded on first use, too.
_MODULES = ("anndata", "checker", "demo", "path", "questions", "report")

__all__ = sorted(_EXPORTS)

if TYPE_CHECKING:
    from .checker import verify as verify
    from .comparison import compare as compare
    from .data.inputs import read as read
    from .data.moments import Moments as Moments
    from .data.products import Gram as Gram
    from .data.screening import Screened as Screened
    from .data.sums import Sums as Sums
    from .data.table import Table as Table
    from .estimator import SparsePCA as SparsePCA
    from .fit import sparse_pca as sparse_pca
    from .path import sparse_path as sparse_path
    from .problem.answers import Alternatives as Alternatives
    from .problem.result import Certificate as Certificate
    from .problem.result import Result as Result
    from .problem.result import Status as Status
    from .questions.choice import choose as choose
    from .questions.explanation import Explanation as Explanation
    from .questions.explanation import explain as explain
    from .questions.growth import update as update
    from .questions.nearby import alternatives as alternatives
    from .questions.resampling import stability as stability
    from .questions.windows import trends as trends
    from .report.page import write_report as write_report


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_EXPORTS[name]}", __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_MODULES})
