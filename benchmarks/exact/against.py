"""Two versions of the package on the same questions, by turns: the least CPU time of repeats.

python -m benchmarks.exact.against FOLDER [set[:s,s,...] ...]

FOLDER is a checkout of the version to compare with; without sets, all of them are asked. A version
has a process of its own, the two wait for each other, so that both see the same machine. Exits with
1 where a question that the other version proves is not proved, or takes a tenth longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .sets import CORRELATIONS, correlation, table

SIZES = (5, 10, 20, 40)
SETS = (
    *CORRELATIONS,
    *("lrs", "mfeat", "cbcl", "isolet", "colon", "leukemia", "arcene"),
    *("kos", "kos centred", "nips", "pbmc", "pbmc centred"),
)
SECONDS, MOST = 2.0, 30  # repeats of one question: CPU seconds of one version, and at most
HERE = Path(__file__).resolve().parents[2]


class Version:
    """A process that answers with the package of one folder."""

    def __init__(self, folder: Path) -> None:
        paths = os.pathsep.join((str(folder / "src"), str(HERE)))
        self.process = subprocess.Popen(
            (sys.executable, "-m", "benchmarks.exact.against", "--answer"),
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, name: str, s: int) -> list[Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps((name, s)), file=self.process.stdin, flush=True)
        answer: list[Any] = json.loads(self.process.stdout.readline())
        return answer


def answer() -> None:
    """Read questions, answer each with value, status, gap and CPU seconds."""
    from sparcipal import sparse_pca

    known: str | None = None
    given: dict[str, Any] = {}
    for line in sys.stdin:
        name, s = json.loads(line)
        if name != known:
            known, given = name, correlation(name) if name in CORRELATIONS else table(name)
            sparse_pca(**given, n_nonzero_coefs=s)  # kernels are compiled, pages touched
        start = time.process_time()
        result = sparse_pca(**given, n_nonzero_coefs=s)
        seconds = time.process_time() - start
        print(json.dumps((result.value, str(result.status), result.gap, seconds)), flush=True)


def compare(then: Version, now: Version, name: str, s: int) -> bool:
    """Print a row; is what was proved still proved, in at most a tenth more?"""
    old, new = then.ask(name, s), now.ask(name, s)
    repeats = int(min(max(SECONDS / max(old[3], new[3], 1e-3), 1), MOST))
    least = [old[3], new[3]]
    for _ in range(repeats):
        least = [min(t, v.ask(name, s)[3]) for t, v in zip(least, (then, now), strict=True)]
    ratio = least[1] / least[0]
    good = old[1] != "optimal" or (new[1] == "optimal" and ratio <= 1.1)
    print(
        f"{name:<13}{s:>3} {old[0]:>15.9g} {old[2]:>9.1e} {new[0]:>15.9g} {new[2]:>9.1e}"
        f"{1000 * least[0]:>9.1f}{1000 * least[1]:>9.1f} {ratio:>6.2f} {'' if good else '*'}",
        flush=True,
    )
    return good


def main() -> None:
    if sys.argv[1:] == ["--answer"]:
        answer()
        return
    folder, *wanted = sys.argv[1:]
    then, now = Version(Path(folder).resolve()), Version(HERE)
    head = f"{'set':<13}{'s':>3} {'then':>15} {'gap':>9} {'now':>15} {'gap':>9}"
    print(f"{head}{'ms':>9}{'ms':>9} {'ratio':>6}")
    good = True
    for name, _, sizes in (item.partition(":") for item in wanted or SETS):
        given = correlation(name) if name in CORRELATIONS else table(name)
        limit = next(iter(given.values())).shape[1]
        for s in (int(size) for size in sizes.split(",")) if sizes else SIZES:
            if s < limit:
                good &= compare(then, now, name, s)
    sys.exit(not good)


if __name__ == "__main__":
    main()
