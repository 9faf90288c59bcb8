"""Pictures are scikit-learn Displays: `from_...` makes one, `.plot(ax=)` draws it, artists stay.

Only this package imports matplotlib (pip install 'sparcipal[plot]'), and only when a picture is
drawn. Colours are distinguishable for colour-blind readers; lines differ in dash and bars in hatch,
for grey print.
"""

from .choice import ChoiceDisplay
from .convergence import ConvergenceDisplay
from .correlations import CorrelationsDisplay
from .frequencies import StabilityDisplay
from .loadings import HeatmapDisplay, LoadingsDisplay
from .nearby import AlternativesDisplay
from .overtime import TrendsDisplay
from .path import PathDisplay
from .scores import BiplotDisplay, ScoresDisplay
from .variance import VarianceDisplay

__all__ = [
    "AlternativesDisplay",
    "BiplotDisplay",
    "ChoiceDisplay",
    "ConvergenceDisplay",
    "CorrelationsDisplay",
    "HeatmapDisplay",
    "LoadingsDisplay",
    "PathDisplay",
    "ScoresDisplay",
    "StabilityDisplay",
    "TrendsDisplay",
    "VarianceDisplay",
]
