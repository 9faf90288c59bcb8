"""One component, proved: values, bounds, nodes, CPU seconds; every certificate is replayed.

python -m benchmarks.exact [correlations] [full] [many] [nonnegative] [noise] [path]

`many` asks for 40 to 200 nonzeros among thousands of features, with the default effort.

`path` compares one call for all cardinalities with separate calls, and fails unless it is cheaper.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from sparcipal import sparse_pca, verify

from . import path
from .sets import questions

GROUPS = ("correlations", "full", "many", "nonnegative", "noise", "path")


def run(group: str) -> None:
    seconds = []
    head = f"{'set':<13}{'s':>3} {'value':>15} {'gap':>9} {'status':<11}{'nodes':>6}{'dropped':>8}"
    print(f"{group}\n{head} {'CPU s':>7} {'verified':<9}{'CPU s':>6}")
    for name, given, s, settings in questions(group):
        start = time.process_time()
        result = sparse_pca(**given, n_nonzero_coefs=s, **settings)
        solved = time.process_time()
        where = {key: given[key] for key in ("X", "covariance") if key in given}
        verdict = verify(result, **where)
        checked = time.process_time() - solved
        seconds.append(solved - start)
        certificate = result.certificate
        print(
            f"{name:<13}{s:>3} {result.value:>15.9g} {result.gap:>9.2e} {result.status:<11}"
            f"{certificate.nodes:>6}{certificate.eliminated:>8} {seconds[-1]:>7.2f} "
            f"{verdict.verdict:<9}{checked:>6.2f}",
            flush=True,
        )
    print(f"geometric mean {np.exp(np.mean(np.log(seconds))):.3f} CPU s\n")


def main() -> None:
    # compile the kernels first: they are cached on disk afterwards
    sparse_pca(covariance=np.eye(6) + 0.3, n_nonzero_coefs=3)
    good = True
    for group in sys.argv[1:] or GROUPS:
        if group not in GROUPS:
            raise SystemExit(f"unknown group {group!r}; choose from {', '.join(GROUPS)}")
        if group == "path":
            good = path.run()
        else:
            run(group)
    sys.exit(not good)


if __name__ == "__main__":
    main()
