"""Checks that data are those that a result came from, before more is said of the result.

Samples, means, scales and the total variance are compared, as `verify` does, in the units of each
feature. Sums in another order, of other containers or in passes, agree far better than NEAR. Then
`verify` rechecks what the result claims: a file may say anything, and what follows repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..checker import Budget, verify
from ..checker.budget import Refused
from ..checker.result import claimed
from ..data.checks import other_ways_out
from ..data.facts import Data
from ..data.inputs import Input
from ..data.rows import Rows
from ..data.samples import aligned
from ..data.sums import Sums
from ..data.table import Table
from ..problem.constraints import Columns
from ..problem.result import Result

NEAR = 1e-9  # relative difference that rounding in sums does not reach
NAMED = 3  # features that an error names


class Given(NamedTuple):
    """The data as the user passed them."""

    X: Any
    covariance: Any
    sample_weight: Any


def refuse_damaged(answer: Result | None) -> None:
    """Raise ValueError, with the entry, for a result that has entries which no fit gives."""
    try:
        if answer is not None:
            claimed(answer)
    except Refused as what:
        raise ValueError(f"the result is damaged, or was changed: {what}; fit again") from what


def recheck(answer: Result, given: Given, source: Input) -> str:
    """Raise ValueError for a result that claims what does not hold for its data; what is returned
    says why its bounds could not be rechecked, and is empty where they hold.

    `given` are the data of `source`, as the user passed them.
    """
    rows, X = source.source, given.X
    if isinstance(rows, Sums):
        return "sums over the rows were passed, without the rows"
    if isinstance(rows, Rows) and not answer.certificate.screening:
        return "the rows are read in passes, and verify holds them all"
    if isinstance(rows, Table) and source.gaps is None:
        X = rows  # with the names that the user has given
    budget = Budget()
    found = verify(
        answer, X, covariance=given.covariance, sample_weight=given.sample_weight, budget=budget
    )
    if found.verdict == "refused" and budget.spent <= budget.most_work:
        raise ValueError(
            f"the result claims what does not hold for these data: {found.reason}; pass the data "
            "that it came from, or fit these again"
        )
    return "" if found else found.reason


@contextmanager
def only_its_data(answer: Result | None) -> Iterator[None]:
    """Replace the remedy of an error about gaps: an answer has settled what is done with them."""
    remedy = "pass the data that the result came from, or fit these"
    with nullcontext() if answer is None else other_ways_out(remedy):
        yield


def its_features(answer: Result) -> Callable[[Columns, int | None], None]:
    """Return what is asked of the features of data that a result is said to come from."""

    def asked(columns: Columns, n_samples: int | None) -> None:
        if answer.feature_names is None or columns.names is None:
            _check_count(answer, columns.count)
            return
        known = set(columns.names)
        gone = [repr(name) for name in answer.feature_names if name not in known]
        if gone:
            more = f" and {len(gone) - NAMED:,} more" if len(gone) > NAMED else ""
            raise ValueError(
                f"the data have no feature {', '.join(gone[:NAMED])}{more}, but the result has; "
                "pass the data that it came from"
            )

    return asked


def _check_count(answer: Result, n_features: int) -> None:
    if n_features != answer.n_features:
        raise ValueError(
            f"the result has n_features={answer.n_features}, but the data have {n_features}; pass "
            "the data that it came from"
        )


def in_order(answer: Result, source: Input) -> Input:
    """Return the data with their features in the order of the result; refuse other features."""
    own = answer.feature_names
    if own is not None and isinstance(source.source, Table) and source.gaps is None:
        table = aligned(own, source.source)
        source = replace(source, source=table, feature_names=table.feature_names)
    _check_count(answer, source.n_features)
    names = source.feature_names
    if own is not None and names is not None and tuple(own) != tuple(names):
        first = next((a, b) for a, b in zip(own, names) if a != b)
        raise ValueError(
            f"the data have the feature {first[1]!r} where the result has {first[0]!r}; pass the "
            "columns that it came from, in the same order"
        )
    return source


def check_same(answer: Result, data: Data) -> None:
    """Raise ValueError, with the first features that differ, unless the result is of the data."""
    wrong = _difference(answer, data)
    if wrong:
        raise ValueError(
            f"these are not the data of the result: {wrong}; pass the data that it came from, or "
            "fit these again"
        )


def _difference(answer: Result, data: Data) -> str:
    """Return the first difference in words; "" if there is none."""
    weighted = bool(answer.settings.get("sample_weight"))
    if weighted != data.weighted:
        return f"it was fitted {'with' if weighted else 'without'} sample_weight"
    if answer.n_samples != data.n_samples:
        these, those = (
            "a covariance" if n is None else f"{n} samples"
            for n in (data.n_samples, answer.n_samples)
        )
        return f"{these} here, {those} there"
    total, own = answer.total_variance, data.total_variance * data.covariance.unit
    mass = total
    if answer.mean is not None and answer.scale is not None:
        unit = 1.0 if answer.settings["scale"] else np.sqrt(max(total, 0.0))
        size = np.abs(answer.mean) + answer.scale * unit
        for name, here, there in (
            ("mean", data.mean, answer.mean),
            ("scale", data.scale, answer.scale),
        ):
            if here is None:
                return f"they have no {name}"
            apart = np.flatnonzero(~(np.abs(here - there) <= NEAR * size))
            if apart.size:
                said = ", ".join(
                    f"{answer.feature_name(int(j))!r} ({here[j]:.7g} here, {there[j]:.7g} there)"
                    for j in apart[:NAMED]
                )
                more = f" and {apart.size - NAMED:,} more" if apart.size > NAMED else ""
                return f"the {name} differs for {said}{more}"
        # the rounding of variances grows with the squared means they are taken about
        mass += float(((answer.mean / answer.scale) ** 2).sum())
    if not abs(own - total) <= NEAR * mass:
        return f"the total variance is {own:.10g} here, {total:.10g} there"
    return ""
