"""Components that share features: value and gap of every kind, and a semidefinite relaxation.

    python -m benchmarks.overlap [kind ...]       kinds: free orthogonal common adjusted sdp

`sdp` is the relaxation of Cory-Wright and Pauphilet (2022) for orthogonal components, restated for
cvxpy: Y = sum_j Y_j <= I with tr Y_j = 1 and |Y_j|_1 <= s, each bounded by its diagonal. It runs
where there are few features.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.data import path
from sparcipal import sparse_pca, verify

KINDS = {
    "free": {"supports": "free"},
    "orthogonal": {"supports": "orthogonal"},
    "common": {"supports": "common"},
    "adjusted": {"objective": "adjusted"},
}
SIZES = ((2, 5), (3, 5), (2, 10), (3, 10))
SDP_FEATURES = 20


def matrices() -> dict[str, np.ndarray]:
    stored = np.load(path("benchmark_correlations.npz"))
    pitprops = np.loadtxt(path("pitprops.csv"), delimiter=",")
    return {"pitprops": pitprops, **{n: stored[n] for n in ("wine", "communities", "arrhythmia")}}


def measured(kind: str) -> None:
    gaps = []
    for name, A in matrices().items():
        for k, s in SIZES:
            if kind == "adjusted" and k * s > len(A):
                continue
            start = time.process_time()
            asked = {"n_components": k, "n_nonzero_coefs": s, **KINDS[kind]}
            result = sparse_pca(covariance=A, **asked)
            seconds = time.process_time() - start
            assert verify(result, covariance=A), "not proved"
            gaps.append(result.gap)
            print(
                f"{kind:<10} {name:<12} {k} x {s:<3} value {result.value:.6f} "
                f"gap {100 * result.gap:6.3f} % {result.certificate.proved_by:<12} {seconds:5.1f} s"
            )
    print(f"{kind:<10} mean gap {100 * np.mean(gaps):.3f} %")


def relaxed(A: np.ndarray, k: int, s: int) -> float:
    """The value of the relaxation: an approximate upper bound, not a proof."""
    import cvxpy as cp

    p = len(A)
    parts = [cp.Variable((p, p), PSD=True) for _ in range(k)]
    z = cp.Variable((p, k))
    total = sum(parts)
    rules = [np.eye(p) - total >> 0, z >= 0, z <= 1]
    for j, Y in enumerate(parts):
        rules += [cp.trace(Y) == 1, cp.sum(z[:, j]) <= s, cp.diag(Y) <= z[:, j]]
        rules += [cp.sum(cp.abs(Y)) <= s]
        rules += [cp.norm(Y[i]) ** 2 <= z[i, j] for i in range(p)]
    problem = cp.Problem(cp.Maximize(cp.trace(A @ total)), rules)
    return float(problem.solve(solver=cp.CLARABEL))


def relaxations() -> None:
    for name, A in matrices().items():
        if len(A) > SDP_FEATURES:
            print(f"sdp        {name:<12} {len(A)} features: left out")
            continue
        for k, s in SIZES:
            start = time.process_time()
            bound = relaxed(A, k, s)
            print(
                f"sdp        {name:<12} {k} x {s:<3} bound {bound:.6f} "
                f"{time.process_time() - start:5.1f} s"
            )


def main() -> None:
    for kind in sys.argv[1:] or [*KINDS, "sdp"]:
        if kind == "sdp":
            relaxations()
        elif kind in KINDS:
            measured(kind)
        else:
            raise SystemExit(f"{kind!r} is unknown; choose from {', '.join([*KINDS, 'sdp'])}")


if __name__ == "__main__":
    main()
