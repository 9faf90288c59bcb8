"""value - rounding <= optimum <= bound on thousands of small problems made to break it.

    python -m benchmarks.soundness [CASES [FIRST_SEED [passes | touch | labels | modes | sets]]]

Every family with every method in turn, all options, budgets that stop anywhere; the judge uses
exact fractions (oracle.py). One case in five is a proof of one component alone, with what the
library never asks of it: prices, lies about the incumbent, tiny cores, touch certificates of any
core and level (touch_cases.py), or such certificates and ellipsoids, honest and changed, before the
checker in both arithmetics (cover_cases.py); with "touch" as the third argument all cases are of
the last two kinds.
One in five is a table read in passes of which only some features are kept (streams.py), judged on
all of them; with "passes" as the third argument all cases are, with "labels" all are trees of cases
(label_cases.py), and with "modes" all are about several components of every kind, against the best
admissible ones that a search finds (mode_cases.py), and with "sets" all are logs of common sets,
honest and changed (set_cases.py). Prints every violation with its seed, then the number of cases
and the tightest margins; the exit code is 1 if there is a violation.
SIGTERM ends it after the case at hand.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter

from tests.support.cases import case
from tests.support.cover_cases import one_ellipsoid_case, one_touch_replay
from tests.support.judge import Verdict, judge
from tests.support.label_cases import one_label_case
from tests.support.mode_cases import mode_case, one_mode_case
from tests.support.proof_cases import one_case, one_large_case
from tests.support.set_cases import one_set_case
from tests.support.streams import streamed
from tests.support.touch_cases import one_touch_case

COVERS = (one_touch_case, one_touch_replay, one_ellipsoid_case)


class Tally:
    """What was seen so far."""

    def __init__(self) -> None:
        self.cases = self.results = self.optimal = self.exact = self.proofs = self.wrong = 0
        self.above: tuple[float, int] = (float("inf"), -1)
        self.below: tuple[float, int] = (float("inf"), -1)
        self.refused: Counter[str] = Counter()
        self.proved_by: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def add(self, seed: int, verdict: Verdict) -> None:
        self.cases += 1
        self.results += verdict.results
        self.optimal += verdict.optimal
        self.exact += verdict.exact
        self.above = min(self.above, (verdict.above, seed))
        self.below = min(self.below, (verdict.below, seed))
        self.proved_by.update(verdict.proved_by)
        self.rules.update(verdict.rules)
        if verdict.refused:
            self.refused[" ".join(verdict.refused.split()[:4])] += 1

    def say(self) -> None:
        print(
            f"{self.cases} calls with {self.results} certificates ({self.optimal} optimal, "
            f"{self.exact} confirmed by exact elimination, all rechecked) and {self.proofs} "
            f"proofs: {self.wrong} violations"
        )
        print(f"tightest bound: {self.above[0]:.2g} above the optimum (seed {self.above[1]})")
        print(f"tightest value: {self.below[0]:.2g} inside its margin (seed {self.below[1]})")
        print("proved by:", ", ".join(f"{n} {name}" for name, n in self.proved_by.most_common()))
        if self.kinds:
            print("components:", ", ".join(f"{n} {kind}" for kind, n in self.kinds.items()))
        if self.rules:
            rules = (f"{n} {name}" for name, n in self.rules.most_common())
            print("dropped features bounded by:", ", ".join(rules))
        if self.refused:
            print("refused:", ", ".join(f"{n} {words!r}" for words, n in self.refused.items()))


def campaign(cases: int, first: int, only: str = "") -> Tally:
    tally, start, ended = Tally(), time.monotonic(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    for seed in range(first, first + cases):
        if ended.is_set():
            break
        if only == "labels":
            tally.proofs += 1
            wrong, told = one_label_case(seed), f"seed {seed}: a tree of cases"
        elif only == "sets":
            tally.proofs += 1
            wrong, told = one_set_case(seed), f"seed {seed}: a log of common sets"
        elif only == "modes":
            tally.proofs += 1
            wrong, told = one_mode_case(seed), str(mode_case(seed))
            tally.kinds[mode_case(seed).kind] += 1
        elif only == "touch" or (seed % 5 == 3 and not only):
            tally.proofs += 1
            kinds = COVERS if only else (one_case, one_large_case, *COVERS)
            wrong = kinds[(seed if only else seed // 5) % len(kinds)](seed)
            told = f"seed {seed}: a proof of one component"
        else:
            # all pairs of family and method, not three fifths of them
            question = streamed(seed) if only or seed % 5 == 4 else case(seed // 5 * 3 + seed % 5)
            verdict = judge(question)
            tally.add(seed, verdict)
            wrong, told = verdict.wrong, f"{question} (here {seed})"
        if wrong:
            tally.wrong += 1
            print(f"{told}: {'; '.join(wrong)}", flush=True)
        if (seed - first + 1) % 500 == 0:
            spent = time.monotonic() - start
            print(f"{seed - first + 1} cases, {spent:.0f} s", file=sys.stderr, flush=True)
    return tally


def main(cases: str = "2000", first: str = "0", only: str = "") -> int:
    if only not in ("", "passes", "touch", "labels", "modes", "sets"):
        raise SystemExit(f"unknown kind {only!r}; choose passes, touch, labels, modes or sets")
    tally = campaign(int(cases), int(first), only)
    tally.say()
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
