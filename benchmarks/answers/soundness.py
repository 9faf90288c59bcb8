"""Constraints, lists and costs against enumeration on N small problems (default 1000), an eighth of
them tables that are read in passes.

python -m benchmarks.answers.soundness [N] [FIRST SEED]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from tests.support.nearly import PASSES, falling, in_blocks, nearly, wrong

from sparcipal import alternatives, verify

WITHIN = (0.01, 0.1, 0.3, 0.0)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = refused = 0
    warnings.simplefilter("ignore")  # constant columns are set aside
    for seed in range(first, first + count):
        case = nearly(seed, k=2 if seed % 5 == 4 else 1)
        data = {"covariance": case.covariance} if seed % 3 == 0 else {"X": case.X}
        more = {}
        if seed % 8 == 5:
            case, more = falling(seed // 8), {"memory_limit": PASSES}
            data = {"X": in_blocks(case.X)}
        try:
            found = alternatives(**data, **case.keywords, within=WITHIN[seed % 4], **more)
        except ValueError as error:
            variance = np.diagonal(case.covariance)
            left = np.delete(variance, case.exclude).max(initial=0.0)
            nothing = "every feature" in str(error) and left <= 1e-12 * variance.max()
            if "varies too little" not in str(error) and not nothing:
                raise
            refused += 1  # an anchor that is not kept, or a table without variance
            continue
        verdict = verify(found, **data)
        said = wrong(case, found) + ([] if verdict else [verdict.reason])
        bad += bool(said)
        for sentence in said:
            print(f"seed {seed}: {sentence}")
    print(f"{count} problems, {refused} refused, {bad} contradicted")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
