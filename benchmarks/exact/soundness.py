"""Proofs of one component against enumeration, on many small problems with all options.

python -m benchmarks.exact.soundness [cases, default 10000] [first seed]

Budgets stop searches anywhere, incumbents lie, features are repeated, scaled and constant; every
proof is replayed. Prints each case that is wrong and exits with 1 if there is one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from proof_cases import one_case, one_large_case


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    wrong, start = 0, time.monotonic()
    for seed in range(first, first + cases):
        # one in eight is solved on a core and extended
        one = one_large_case if seed % 8 == 0 else one_case
        reasons = one(seed)
        if reasons:
            wrong += 1
            print(f"seed {seed}: {'; '.join(reasons)}", flush=True)
        if (seed - first + 1) % 500 == 0:
            print(f"{seed - first + 1} cases, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{cases} cases, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
