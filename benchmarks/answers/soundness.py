"""Constraints, lists and costs against enumeration on N small problems (default 1000).

python -m benchmarks.answers.soundness [N] [FIRST SEED]
"""

from __future__ import annotations

import sys

from tests.support.nearly import nearly, wrong

from sparcipal import alternatives, verify

WITHIN = (0.01, 0.1, 0.3, 0.0)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = 0
    for seed in range(first, first + count):
        case = nearly(seed, k=2 if seed % 5 == 4 else 1)
        data = {"covariance": case.covariance} if seed % 3 == 0 else {"X": case.X}
        found = alternatives(**data, **case.keywords, within=WITHIN[seed % 4])
        verdict = verify(found, **data)
        said = wrong(case, found) + ([] if verdict else [verdict.reason])
        bad += bool(said)
        for sentence in said:
            print(f"seed {seed}: {sentence}")
    print(f"{count} problems, {bad} contradicted")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
