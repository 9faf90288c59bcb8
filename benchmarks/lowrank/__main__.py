"""Low rank, exactly: the search over cones, its limits, and the experiments of its papers.

    python -m benchmarks.lowrank [cones] [scaling] [enumeration] [spiked] [recovery] [threads]
        [figures]

`cones` KOS and Leukemia, rank 4 to 7; `scaling` 10,000 against 100,000 rows; `enumeration`
against the papers' own algorithm; `spiked` the recovery experiment of Papailiopoulos et al. (2013),
SPARCIPAL_REPEATS times (default: 200); `recovery` supports of a population against the number of
samples, with their stability; `threads` long searches on one and two threads; `figures` the three
figures of Asteris et al. (2014), drawn into the folder named by SPARCIPAL_FIGURES (default: a
temporary one). CPU times; values and bounds are recomputed here or by the checker.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys

from benchmarks.lowrank import experiments, figures, search

PARTS = {
    "cones": search.cones,
    "scaling": search.scaling,
    "enumeration": search.enumeration,
    "spiked": experiments.spiked,
    "recovery": experiments.against_n,
    "threads": search.threads,
    "figures": figures.figures,
}


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"no part called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in names:
        PARTS[name]()


main()
