"""The library of instances: best values, best bounds, and their proofs.

    python -m benchmarks.library [check] [name ...]       recheck with `verify` alone
    python -m benchmarks.library make [name ...]          solve what is not there, or what is named
    python -m benchmarks.library take NAME RESULT.json    an improvement: rechecked, then kept
    python -m benchmarks.library table                    README.md from the list

`make library` is `check`. Data come from the folder named by SPARCIPAL_DATA; instances whose data
are absent are named and skipped. `make` starts from the components that are known, with the effort
with which they were made; `--certify full` and `--seconds 180` for each instance change that, and
`--minutes 10` is for all of them. `--proofs FOLDER` is where `make` saves each result with its
proof, however large, and where `check` looks for proofs that the library does not keep. Every
command takes `--folder` for another library than the one of the repository.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.library.archive import (
    FOLDER,
    RELATIVE,
    Archive,
    Entry,
    NotBetter,
    NotTaken,
    check,
    check_beside,
    chosen,
    loaded,
    made_with,
    take,
)
from benchmarks.library.instances import INSTANCES, Instance
from benchmarks.library.table import write_table
from sparcipal import Result, sparse_pca


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library")
    parser.add_argument(
        "what", nargs="?", default="check", choices=("check", "make", "take", "table")
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--certify", choices=("fast", "full"))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--proofs", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_intermixed_args(arguments)
    archive = Archive(asked.folder)
    try:
        if asked.what == "check":
            raise SystemExit(recheck_all(archive, asked))
        if asked.what == "make":
            solve(archive, asked)
        elif asked.what == "take":
            if len(asked.names) != 2 or asked.names[0] not in INSTANCES:
                raise SystemExit("take needs the name of an instance and a saved result")
            name, file = asked.names
            say(f"{name}: {take(archive, INSTANCES[name], loaded(Path(file)), 'sent in')}")
        else:
            write_table(archive)
    except NotTaken as refused:
        raise SystemExit(f"not taken: {refused}") from None


def recheck_all(archive: Archive, asked: argparse.Namespace) -> int:
    """Recheck what is asked for; 1 if anything does not hold, or nothing could be rechecked."""
    if asked.proofs is not None and not asked.proofs.is_dir():
        raise SystemExit(f"--proofs {asked.proofs}: no such folder; `make` writes one")
    entries, faults = archive.read()
    faults = [f"library.jsonl, {fault}" for fault in faults]
    faults += [f"results/{stray}: of no line of the list" for stray in archive.strays(entries)]
    counts = {"proved": 0, "bound not rechecked": 0, "data absent": 0, "wrong": len(faults)}
    for fault in faults:
        say(f"WRONG: {fault}")
    for instance in chosen(asked.names):
        start = time.process_time()
        said, reason = _verdict(archive, instance, entries.get(instance.name), asked.proofs)
        counts[said] += 1
        spent = time.process_time() - start
        say(f"{instance.name}: {said.replace('wrong', 'WRONG')}: {reason} ({spent:.1f} s)")
    say(", ".join(f"{count} {said}" for said, count in counts.items()))
    return int(counts["wrong"] > 0 or counts["proved"] + counts["bound not rechecked"] == 0)


def _verdict(
    archive: Archive, instance: Instance, entry: Entry | None, proofs: Path | None
) -> tuple[str, str]:
    if entry is None:
        return "wrong", "no valid line in the list"
    if instance.source.absent:
        return "data absent", str(instance.source.file)
    beside = None if proofs is None else proofs / f"{instance.name}.json"
    try:
        proved = check(archive, instance, entry) or (
            beside is not None and check_beside(instance, entry, beside)
        )
    except (OSError, ValueError) as refused:
        return "wrong", str(refused)
    said = "proved" if proved else "bound not rechecked"
    return said, f"{entry.value:.9g} .. {entry.bound:.9g}"


def solve(archive: Archive, asked: argparse.Namespace) -> None:
    """Solve instances that are not in the list; those that are named, once more."""
    known = archive.entries()
    begun = time.monotonic()
    for instance in chosen(asked.names):
        if instance.source.absent or (instance.name in known and not asked.names):
            continue
        if time.monotonic() - begun > 60 * asked.minutes:
            say("stopped; run it again for the rest")
            return
        start = time.process_time()
        before = archive.result(instance.name) if instance.name in known else None
        result = sparse_pca(**instance.question(), **_effort(before, asked), init=before)
        spent = time.process_time() - start
        if asked.proofs is not None:
            asked.proofs.mkdir(parents=True, exist_ok=True)
            result.save(asked.proofs / f"{instance.name}.json")
        try:
            said = take(archive, instance, result, f"{made_with(result)}, {spent:.2g} CPU s")
        except NotTaken as refused:
            said = f"not taken: {refused}"
            again = isinstance(refused, NotBetter)
            if again and result.bound <= known[instance.name].bound * (1 + RELATIVE):
                said = f"the listed bound is proved again, {len(result.to_json()):,} bytes; {said}"
        say(f"{instance.name}: {said} ({spent:.1f} s)")


def _effort(before: Result | None, asked: argparse.Namespace) -> dict[str, Any]:
    """The effort that is asked for, or else that of the stored result."""
    settings = {} if before is None else before.settings
    return {
        "certify": asked.certify or settings.get("certify") or "fast",
        "time_limit": asked.seconds or settings.get("time_limit"),
    }


if __name__ == "__main__":
    main()
