"""Every table and figure of the four papers for which there is data, printed and measured side
by side.

    python -m benchmarks.tables [--repeats 200] [--certify fast] [--jobs 2] [joint] [text] [curves]
        [example] [spiked] [genes] [nonnegative] [cost-gaussian] [cost-spiked] [relaxation]
        [printed] [absent]

Writes Markdown and pictures into the folder named by SPARCIPAL_RESULTS (default:
benchmarks/results/tables); data come from the folder named by SPARCIPAL_DATA. Every part writes
its own file, so that it can be run again alone; all of them take about a quarter of an hour of
CPU time, in as many processes as there are cores (`--jobs`). `--repeats` is for the recovery
experiment, which its paper repeats 5000 times; `printed` renews `measured.json`, from which the
page of printed and measured figures is made; `absent` runs sets that are put into the folder
later; `--certify full` takes some minutes more for smaller gaps in the first two tables.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import sparcipal
from benchmarks import data
from benchmarks.tables import joint, relaxation, scoreboard, single
from benchmarks.tables.absent import absent

FOLDER = Path(os.environ.get("SPARCIPAL_RESULTS", Path(__file__).parents[1] / "results" / "tables"))
# The longest first: parts run side by side.
PARTS: dict[str, Callable[..., Iterator[str]]] = {
    "joint": joint.table_1,
    "cost-gaussian": partial(relaxation.cost, model="Gaussian"),
    "cost-spiked": partial(relaxation.cost, model="spiked"),
    "curves": joint.curves,
    "text": joint.table_2_and_4,
    "nonnegative": single.nonnegative,
    "genes": single.genes,
    "spiked": single.spiked,
    "relaxation": relaxation.relaxation,
    "printed": scoreboard.measure,
    "example": joint.example,
    "absent": absent,
}
NOT_RUN = """# What is not run, and why

| where | what | reason |
| --- | --- | --- |
| Asteris et al. 2015, table 1 | Amazon commerce reviews, PEMS | not among the data sets |
| Asteris et al. 2015, table 2 | Enron, NYTimes | not among the data sets; KOS and NIPS are run |
| Asteris et al. 2015, tables 3, 5-7, figures 4-6 | NYTimes | not among the data sets |
| Asteris et al. 2015, figure 1 | illustration | a drawing of the bipartite graph |
| Papailiopoulos et al. 2013, figure 1; Asteris et al. 2014, figures 1, 2 | illustrations | no \
data behind them; `docs/examples/plot_spannogram.py` draws them for a matrix |
| Papailiopoulos et al. 2013, figure 2 (one of two sets) | lymphoma | not among the data sets; \
colon is run, Leukemia added |
| Papailiopoulos et al. 2013, tables 1 and 2 | Greek tweets of 2011 | never published; \
20 Newsgroups instead, in `printed` |
| Zhang & El Ghaoui 2011, figure 2, tables 1 and 2 | NYTimes, PubMed | not among the data sets; \
KOS and NIPS instead |

Curves whose values the papers do not print are measured without a printed value beside them:
figures 2 and 3 of Asteris et al. 2015, figure 2 of Papailiopoulos et al. 2013, figures 3 to 6 of
Asteris et al. 2014 but for one value each of figures 4 and 5 and two of figure 6, figures 1 and 2
of Zhang & El Ghaoui 2011.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--certify", choices=("fast", "full"), default="fast")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    names = asked.parts or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"no part called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "not-run.md").write_text(NOT_RUN, encoding="utf-8")
    if len(names) == 1:
        _run(names[0], asked.repeats, asked.certify)
    else:
        sys.stdout.write(f"data from {data.FOLDER}, results to {FOLDER}\n")
        sys.stdout.flush()
        _run_all(names, asked)
    _index()


def _run(name: str, repeats: int, certify: str) -> None:
    settings: dict[str, dict[str, Any]] = {
        "joint": {"certify": certify},
        "text": {"certify": certify},
        "spiked": {"repeats": repeats},
    }
    lines = []
    for line in PARTS[name](FOLDER, **settings.get(name, {})):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        lines.append(line)
    lines.append(f"\n{time.process_time():.0f} CPU s.")
    (FOLDER / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _run_all(names: list[str], asked: argparse.Namespace) -> None:
    """Every part in a process of its own, so that one that fails takes no other with it."""

    def run(name: str) -> tuple[str, subprocess.CompletedProcess[str]]:
        settings = ["--repeats", str(asked.repeats), "--certify", asked.certify]
        command = [sys.executable, "-m", "benchmarks.tables", name, *settings]
        return name, subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)

    failed = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done in as_completed([pool.submit(run, name) for name in names]):
            name, process = done.result()
            sys.stdout.write(f"\n{process.stdout}")
            sys.stdout.flush()
            if process.returncode:
                failed.append(name)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = used.ru_utime + used.ru_stime
    sys.stdout.write(f"\n{total:.0f} CPU s in all; see {FOLDER / 'README.md'}\n")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _index() -> None:
    """A page that leads to the parts there are, by their first lines."""
    lines = [
        "# The tables and figures of four papers, measured again",
        f"\nWith sparcipal {sparcipal.__version__}. Every variance is recomputed from the data; a "
        "gap is what a certificate leaves, `recheck` the verdict of an independent checker.\n",
    ]
    parts = []
    for name in PARTS:
        file = FOLDER / f"{name}.md"
        if file.exists():
            title = file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
            parts.append(f"- [{title}]({file.name})")
    lines += [*sorted(parts), "- [What is not run, and why](not-run.md)"]
    (FOLDER / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
