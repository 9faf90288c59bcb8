"""A path in one call against separate calls: same values, every proof replayed, CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from sparcipal import sparse_path, sparse_pca, verify

from .sets import correlation, table

SAME = 2e-6  # relative: two optima, each proved to 1e-6


def questions() -> Iterator[tuple[str, dict[str, Any], range]]:
    yield "communities", correlation("communities"), range(1, 31)
    yield "arrhythmia", correlation("arrhythmia"), range(1, 16)
    yield "kos", table("kos"), range(1, 16)


def run() -> bool:
    """Print the comparison; False when values differ, proofs fail or the path is not cheaper."""
    print(f"path\n{'set':<13}{'sizes':>7} {'path':>7} {'separate':>9} {'ratio':>6}  judged")
    good = True
    for name, given, sizes in questions():
        start = time.process_time()
        path = sparse_path(**given, n_nonzero_coefs=sizes)
        middle = time.process_time()
        alone = [sparse_pca(**given, n_nonzero_coefs=s) for s in sizes]
        end = time.process_time()
        where = {key: given[key] for key in ("X", "covariance") if key in given}
        wrong = [
            f"s={s}: {reason}"
            for s, one, other in zip(sizes, path, alone)
            for reason in _reasons(one, other, where)
        ]
        ratio = (middle - start) / (end - middle)
        wrong += ["not cheaper"] if ratio >= 1.0 else []
        good = good and not wrong
        print(
            f"{name:<13}{f'{sizes[0]}..{sizes[-1]}':>7} {middle - start:>7.2f} "
            f"{end - middle:>9.2f} {ratio:>6.2f}  {'; '.join(wrong) or 'ok'}",
            flush=True,
        )
    print()
    return good


def _reasons(one: Any, other: Any, where: dict[str, Any]) -> list[str]:
    """What is wrong with a result of the path, given that of a separate call."""
    wrong = []
    if one.value < other.value * (1 - SAME):
        wrong.append(f"value {one.value:.9g} below {other.value:.9g}")
    if one.bound > other.bound * (1 + SAME):
        wrong.append(f"bound {one.bound:.9g} above {other.bound:.9g}")
    verdict = verify(one, **where)
    if not verdict:
        wrong.append(f"not verified: {verdict.reason}")
    return wrong
