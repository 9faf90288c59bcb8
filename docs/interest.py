"""The order of the gallery: what most people come for is shown first."""

from __future__ import annotations

FIRST = (
    "samples",
    "loadings",
    "parts",
    "path",
    "choice",
    "stability",
    "alternatives",
    "joint",
    "spannogram",
)


def place(name: str) -> tuple[int, str]:
    """Return the place of an example by the name of its file; those not listed come last."""
    known = name.removeprefix("plot_").removesuffix(".py")
    return (FIRST.index(known) if known in FIRST else len(FIRST), name)
