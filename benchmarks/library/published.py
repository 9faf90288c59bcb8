"""What others have printed on instances of the library, as printed."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A printed figure: who, with which method, which value, and what else is said of it."""

    instance: str
    author: str
    method: str
    value: str
    said: str = ""


_JOINT = "Asteris et al. 2015"
_COLUMNS = ("TPower", "EM", "SpanSPCA", "SPCABiPart")
_SUMS = {
    "arcene-5x40": ("1.08e7", "1.02e7", "1.08e7", "1.10e7"),
    "isolet-5x40": ("33.1", "34.3", "33.4", "35.1"),
    "leukemia-5x40": ("5.00e9", "5.03e9", "4.84e9", "5.37e9"),
    "mfeat-5x40": ("500", "527", "508", "547"),
    "kos-8x15": ("41.4", "42.4", "42.1", "61.4"),
    "nips-8x15": ("2.51e3", "2.57e3", "2.53e3", "3.34e3"),
    "nips-8x10": ("2.5999e3", "", "2.5981e3", "3.2090e3"),
}
PUBLISHED = [
    Published(instance, _JOINT, method, value, "no bound")
    for instance, values in _SUMS.items()
    for method, value in zip(_COLUMNS, values)
    if value
] + [
    Published(
        "arrhythmia-1x5",
        "the literature on exact solvers",
        "branch and bound",
        "4.2321",
        "called optimal; not the optimum of this matrix",
    ),
]
