"""Pictures as scikit-learn Displays: made by `from_...`, drawn by `.plot(ax=)`, artists kept.

The only part of the package that imports matplotlib (pip install 'sparcipal[plot]'), when a picture
is drawn. Colours are distinguishable for colour-blind readers; lines differ in dash and bars in
hatch, for grey print.
"""

from .convergence import ConvergenceDisplay
from .loadings import HeatmapDisplay, LoadingsDisplay
from .path import PathDisplay
from .variance import VarianceDisplay

__all__ = [
    "ConvergenceDisplay",
    "HeatmapDisplay",
    "LoadingsDisplay",
    "PathDisplay",
    "VarianceDisplay",
]
