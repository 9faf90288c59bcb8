"""From a gzipped bag of words to certified components: time, memory, growth, a cluster, an SVD.

    python -m benchmarks.scale [parse] [fit] [svd] [pubmed] [dask] [tree] [growth] [--size small]

Every figure comes from a process of its own, both sides in one run; CPU time of all threads. The
corpora are made up (see corpus.py) and kept in a folder for temporary files, or --folder. Centred
counts, k = 8 components of s = 10 words. Claims are about the size of NYTimes; `small` shows that
all runs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import corpus

REPEAT = 2  # the better of so many runs counts, on both sides
MB = 1e6


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def verdict(good: bool, claim: str) -> None:
    say(f"  {'holds' if good else 'DOES NOT HOLD'}: {claim}")


class Bench:
    def __init__(self, folder: Path, size: str, repeat: int) -> None:
        self.folder, self.size, self.repeat = folder, corpus.SIZES[size], repeat
        self.small = corpus.at(folder, corpus.Size(2000, 3000, 80.0))
        self.source = corpus.at(folder, self.size)
        self.cache = str(folder / "cache")
        self._known: dict[tuple[str, ...], dict[str, Any]] = {}

    def run(self, task: str, *arguments: str, source: Path | None = None) -> dict[str, Any]:
        """The cheapest of some runs of a task."""
        key = (task, str(source or self.source), *arguments)
        if key not in self._known:
            repeat = 1 if task in ("judge", "svd", "tree") else self.repeat
            found = [self._once(task, source or self.source, arguments) for _ in range(repeat)]
            self._known[key] = min(found, key=lambda answer: float(answer["cpu"]))
        return self._known[key]

    def _once(self, task: str, source: Path, arguments: tuple[str, ...]) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.scale.child", task, str(self.small)]
        command += [str(source), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{task} failed:\n{done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    # --- the parts ---

    def parse(self) -> None:
        ours = self.run("parse")
        csr = ours["csr"]
        say(
            f"Parse {ours['documents']} x {ours['words']}, {ours['entries']} entries, "
            f"{self.source.stat().st_size / MB:.0f} MB gzipped, CSR {csr / MB:.0f} MB"
        )
        for name in ("gunzip", "parse", "polars", "pandas"):
            cost = self.run(name)
            above = cost["peak"]["rss"] - cost["base"]["rss"]
            say(
                f"  {name:8s} {cost['cpu']:7.2f} CPU s {cost['wall']:7.2f} s   peak "
                f"{cost['peak']['rss'] / MB:6.0f} MB, {above / MB:6.0f} MB above the start"
            )
        for other in ("polars", "pandas"):
            ratio = self.run(other)["cpu"] / ours["cpu"]
            verdict(ratio >= 2, f"{ratio:.2f} times faster than {other} (claim: 2)")
        self._memory("parse", ours, 1.6)

    def _memory(self, what: str, cost: dict[str, Any], limit: float) -> None:
        above = (cost["peak"]["rss"] - cost["base"]["rss"]) / cost["csr"]
        whole = cost["peak"]["rss"] / cost["csr"]
        verdict(
            whole <= limit,
            f"{what}: peak memory of the process {whole:.2f} x the CSR (claim: {limit}), "
            f"{above:.2f} x above its start",
        )

    def fit(self) -> None:
        say(f"Whole fit from the file, k = 8, s = 10, centred; parse {self._parse():.2f} CPU s")
        for kept, limit in (("500", 2.6), ("1000", 4.2)):
            for certify in ("none", "fast"):
                cost = self.run("fit", kept, certify)
                gap = 100 * (cost["bound"] / cost["value"] - 1)
                ratio = cost["cpu"] / self._parse()
                say(
                    f"  {kept:>4s} kept, certify {certify}: {cost['cpu']:.2f} CPU s, value "
                    f"{cost['value']:.4f}, gap for all features {gap:.2f} %"
                )
                verdict(ratio <= limit, f"{ratio:.2f} x one parse (claim: {limit})")
            self._memory("fit", self.run("memory", kept, "fast"), 1.6)
        for kept in ("500", "1000"):
            self.run("keep", self.cache)
            cost = self.run("mapped", kept, self.cache)
            above = cost["peak"]["anonymous"] - cost["base"]["anonymous"]
            allowed = 0.05 * cost["csr"] + 8 * int(kept) ** 2
            say(f"  memory-mapped, {kept} kept: {cost['cpu']:.2f} CPU s")
            verdict(
                above <= allowed,
                f"anonymous memory {above / MB:.1f} MB above the start (claim: 5 % of the CSR + "
                f"8 m^2 = {allowed / MB:.1f} MB)",
            )

    def _parse(self) -> float:
        return float(self.run("parse")["cpu"])

    def growth(self) -> None:
        documents = [self.size.documents // 4 * f for f in (1, 2, 4)]
        say("Growth with the number of documents: whole fit, 500 kept")
        points = []
        for count in documents:
            source = corpus.at(self.folder, replace(self.size, documents=count))
            cost = self.run("fit", "500", "fast", source=source)
            points.append((cost["entries"], cost["cpu"]))
            say(f"  {count:8d} documents {cost['entries']:10d} entries {cost['cpu']:7.2f} CPU s")
        entries, seconds = np.array(points).T
        power = np.polyfit(np.log(entries), np.log(seconds), 1)[0]
        slope, start = np.polyfit(entries, seconds, 1)
        say(f"  {start:.2f} s + {1e9 * slope:.1f} ns per entry; seconds ~ entries^{power:.2f}")
        verdict(power <= 1.1, "no faster than linear growth (power at most 1.1)")
        say("and with the number of words, the same documents")
        rows = []
        for factor in (0.5, 1, 2):
            size = replace(self.size, documents=documents[0], words=int(self.size.words * factor))
            source = corpus.at(self.folder, size)
            whole = self.run("fit", "500", "fast", source=source)
            parse = self.run("parse", source=source)
            per = 1e9 * whole["cpu"] / whole["entries"]
            rows.append(per)
            say(
                f"  {size.words:8d} words {whole['entries']:10d} entries: parse "
                f"{parse['cpu']:.2f}, whole fit {whole['cpu']:.2f} CPU s, {per:.1f} ns per entry"
            )
        verdict(rows[2] <= 1.5 * rows[0], "four times the words, cost per entry within 1.5 x")

    def dask(self) -> None:
        say("Two dask workers on the memory-mapped arrays, both passes, 1000 kept, certify none")
        self.run("keep", self.cache)
        alone, two, killed = (
            self.run("dask", "1000", self.cache, how) for how in ("alone", "workers", "killed")
        )
        for name, cost in (("one process", alone), ("workers", two), ("one killed", killed)):
            say(f"  {name:12s} {cost['cpu']:7.2f} CPU s {cost['wall']:7.2f} s")
        shares = ", ".join(f"{seconds:.2f}" for seconds in two["workers"])
        say(f"  of the two workers: {two['caller']:.2f} where it was called, {shares} in them;")
        say(f"  to start them, not in these figures, {two['start']:.2f}")
        ratio = two["cpu"] / alone["cpu"]
        verdict(ratio <= 1.6, f"{ratio:.2f} x the CPU time of one process (claim: 1.6)")
        verdict(killed["died"] == 1, "one worker died after a second of work")
        for name, cost in (("two workers", two), ("one of them killed", killed)):
            same = all(cost[key] == alone[key] for key in ("value", "bound", "supports"))
            verdict(same, f"{name}: the same value, bound and supports to the last bit")

    def tree(self) -> None:
        say("One component of 10 among 120 features of noise: branch and bound in subtrees")
        alone, threads, workers = (self.run("tree", how) for how in ("alone", "threads", "workers"))
        for name, cost in (("one", alone), ("two threads", threads), ("two workers", workers)):
            say(
                f"  {name:12s} {cost['cpu']:7.2f} CPU s {cost['wall']:7.2f} s, {cost['nodes']} "
                f"nodes, {cost['status']}"
            )
        same = alone["proof"] == threads["proof"] == workers["proof"]
        verdict(same, "the same proof to the last bit")

    def svd(self) -> None:
        say("scikit-learn's TruncatedSVD and the ten strongest words of each direction")
        theirs, ours = self.run("svd"), self.run("fit", "500", "fast")
        answers = [json.dumps(side["supports"]) for side in (ours, theirs)]
        mine, other = self.run("judge", *answers)["values"]
        say(f"  sparcipal, whole fit {ours['cpu']:7.2f} CPU s   variance {mine:.4f}")
        say(f"  TruncatedSVD alone   {theirs['svd']:7.2f} CPU s   variance {other:.4f}")
        verdict(mine > other, f"{mine / other:.3f} times the variance, recomputed from the counts")
        verdict(ours["cpu"] < theirs["svd"], "the whole fit is cheaper than the SVD alone")

    def pubmed(self) -> None:
        """Once, and only where it is asked for by its name: writing 2 GB takes minutes."""
        name = "pubmed" if self.size == corpus.SIZES["nytimes"] else "small"
        source = corpus.at(self.folder, corpus.SIZES[name])
        cost = self._once("whole", source, (str(self.folder / "cache-pubmed"),))
        gap, peak = 100 * (cost["bound"] / cost["value"] - 1), cost["peak"]
        say(
            f"{cost['documents']} x {cost['words']}, {cost['entries']} entries, default limit, "
            f"through the cache: parse {cost['parse']:.1f} CPU s, whole {cost['cpu']:.1f} "
            f"({cost['wall']:.1f} s), {cost['cpu'] / cost['parse']:.2f} x one parse, "
            f"gap {gap:.2f} %, {peak['anonymous'] / MB:.0f} MB of anonymous memory, "
            f"{peak['rss'] / MB:.0f} with files"
        )


PARTS = ("parse", "fit", "svd", "pubmed", "dask", "tree", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} or all")
    parser.add_argument("--size", choices=sorted(corpus.SIZES), default="nytimes")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "sparcipal-scale"
    )
    parser.add_argument("--repeat", type=int, default=REPEAT)
    asked = parser.parse_args()
    usual = tuple(part for part in PARTS if part != "pubmed")
    wanted = usual if not asked.parts or asked.parts == ["all"] else asked.parts
    if set(wanted) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)} or all")
    bench = Bench(asked.folder, asked.size, asked.repeat)
    for name in wanted:
        getattr(bench, name)()


if __name__ == "__main__":
    main()
