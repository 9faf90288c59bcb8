"""The library of instances: best values, best bounds, and their proofs.

    python -m benchmarks.library [check] [name ...]       recheck with `verify` alone
    python -m benchmarks.library make [name ...]          solve what is not there, or what is named
    python -m benchmarks.library take NAME RESULT.json    an improvement: rechecked, then kept
    python -m benchmarks.library table                    README.md from the list

`make library` is `check`. Data come from the folder named by SPARCIPAL_DATA; instances whose data
are absent are named and skipped. `make` starts from the components that are known, and takes
`--certify full`, `--seconds 180` for each instance and `--minutes 10` for all; every command takes
`--folder` for another library than the one of the repository.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from pathlib import Path

from benchmarks.library.archive import FOLDER, Archive, NotTaken, check, present, take
from benchmarks.library.instances import INSTANCES, SOURCES
from benchmarks.library.table import write_table
from sparcipal import Result, sparse_pca


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library")
    parser.add_argument(
        "what", nargs="?", default="check", choices=("check", "make", "take", "table")
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--certify", choices=("fast", "full"), default="fast")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_intermixed_args()
    archive = Archive(asked.folder)
    if asked.what == "check":
        raise SystemExit(recheck_all(archive, asked.names))
    if asked.what == "make":
        solve(archive, asked)
    elif asked.what == "take":
        if len(asked.names) != 2 or asked.names[0] not in INSTANCES:
            raise SystemExit("take needs the name of an instance and a saved result")
        name, file = asked.names
        try:
            say(f"{name}: {take(archive, INSTANCES[name], Result.load(file), 'sent in')}")
        except NotTaken as refused:
            raise SystemExit(f"not taken: {refused}") from None
    else:
        write_table(archive)


def recheck_all(archive: Archive, names: list[str]) -> int:
    """Recheck every entry whose data are there; return how many do not hold."""
    entries, wrong, checked, stored = archive.entries(), 0, 0, 0
    for instance in present(names):
        entry = entries.get(instance.name)
        if entry is None:
            continue
        start = time.process_time()
        try:
            said = check(archive, instance, entry)
        except (NotTaken, OSError, ValueError) as refused:
            wrong, said = wrong + 1, f"WRONG: {refused}"
        checked, stored = checked + 1, stored + entry.proof
        spent = time.process_time() - start
        say(f"{instance.name}: {entry.value:.9g} .. {entry.bound:.9g}: {said} ({spent:.1f} s)")
    absent = sorted({s.name for s in SOURCES.values() if s.absent})
    if absent:
        say(f"data absent, not rechecked: {', '.join(absent)}")
    say(f"{checked} rechecked, {stored} with their proofs, {wrong} wrong")
    return int(wrong > 0)


def solve(archive: Archive, asked: argparse.Namespace) -> None:
    """Solve instances that are not in the list; those that are named, once more."""
    known = archive.entries()
    begun = time.monotonic()
    for instance in present(asked.names):
        if instance.name in known and not asked.names:
            continue
        if time.monotonic() - begun > 60 * asked.minutes:
            say("stopped; run it again for the rest")
            return
        start = time.process_time()
        start_from = archive.result(instance.name) if instance.name in known else None
        result = sparse_pca(
            **instance.question(), certify=asked.certify, time_limit=asked.seconds, init=start_from
        )
        spent = time.process_time() - start
        try:
            made = f"certify={asked.certify!r}, {spent:.2g} CPU s"
            said = take(archive, instance, result, made)
        except NotTaken as refused:
            said = f"not taken: {refused}"
        say(f"{instance.name}: {said} ({spent:.1f} s)")


main()
