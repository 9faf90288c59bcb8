"""Pictures as scikit-learn Displays: made by `from_...`, drawn by `.plot(ax=)`, artists kept.

The only part of the package that imports matplotlib (pip install 'sparcipal[plot]'). Colours are
distinguishable for colour-blind readers; lines differ in dash and bars in hatch, for grey print.
"""

from __future__ import annotations

import importlib
from typing import Any

# Display -> the file that defines it, loaded on first use.
_DISPLAYS = {
    "ConvergenceDisplay": "convergence",
    "HeatmapDisplay": "loadings",
    "ImagesDisplay": "images",
    "LoadingsDisplay": "loadings",
    "PathDisplay": "path",
    "SpannogramDisplay": "spannogram",
    "VarianceDisplay": "variance",
}

__all__ = sorted(_DISPLAYS)


def __getattr__(name: str) -> Any:
    if name not in _DISPLAYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_DISPLAYS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_DISPLAYS])
