"""Compare several methods on the same problem by one proof."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

import numpy as np

from .data.inputs import Input, resolved
from .fit import sparse_pca
from .numerics.threads import one_blas_thread
from .problem.components import matched
from .problem.parameters import Complaints, refuse
from .problem.result import Result
from .report.words import bound_name, gap_percent, limits, rounded
from .search.registry import METHODS
from .settings import Settings

WIDTH = 100
DEFAULT_METHODS = ("threshold", "tpower", "em", "gpower", "greedy", "spca", "dspca", "auto")


@dataclass(frozen=True)
class Row:
    """What one method came to.

    Attributes
    ----------
    label, method : str
        As asked for; they differ when options were given.
    value : float
        The variance that its components explain together; nan when it could not answer.
    gap : float
        (bound - value) / value with the best bound of all; inf when nothing was proved.
    seconds : float
        CPU time, from the data to the components.
    note : str
        What fell short: a cardinality that was not reached, no convergence, not applicable.
    result : Result or None
    """

    label: str
    method: str
    value: float
    gap: float
    seconds: float
    note: str
    result: Result | None = field(repr=False, default=None)

    @property
    def supports(self) -> tuple[np.ndarray, ...]:
        return self.result.supports if self.result is not None else ()


@dataclass(frozen=True)
class Comparison:
    """The table of `compare`: rows in the order asked for.

    Attributes
    ----------
    rows : tuple of Row
    bound : float
        The smallest upper bound that any run proved; it holds for all of them.
    proved_by : str
    agreement : ndarray of shape (n_methods, n_methods)
        Mean overlap of supports, components matched to each other as well as they can be:
        |S and T| / |S or T|, 1 for the same features, nan where a method gave no answer.
    """

    rows: tuple[Row, ...]
    bound: float
    proved_by: str
    agreement: np.ndarray = field(repr=False)

    @property
    def best(self) -> Row:
        """The row of the largest value; the earlier one if several are equal."""
        return max(self.rows, key=lambda row: -math.inf if math.isnan(row.value) else row.value)

    def __getitem__(self, label: str) -> Row:
        for row in self.rows:
            if row.label == label:
                return row
        known = ", ".join(row.label for row in self.rows)
        raise KeyError(f"no row {label!r}; there are {known}")

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per row, for pandas.DataFrame or a CSV writer."""
        best = self.best
        overlap = self.agreement[self.rows.index(best)]
        return [
            {
                "method": row.label,
                "value": row.value,
                "of_best": row.value / best.value if best.value > 0 else math.nan,
                "gap": row.gap,
                "agreement_with_best": float(overlap[i]),
                "seconds": row.seconds,
                "nonzeros": [int(support.size) for support in row.supports],
                "supports": [support.tolist() for support in row.supports],
                "note": row.note,
            }
            for i, row in enumerate(self.rows)
        ]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [
            "| method | value | of best | gap | agrees with best | CPU s | note |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += ["| " + " | ".join(cells) + " |" for cells in self._cells()]
        return "\n".join(lines)

    def __str__(self) -> str:
        head = ["method", "value", "of best", "gap", "agrees", "CPU s", ""]
        table = [head, *self._cells()]
        notes = [(row[0], row[-1]) for row in table[1:] if row[-1]]
        widths = [max(len(row[i]) for row in table) for i in range(len(head) - 1)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)) for row in table]
        bound = rounded(self.bound, 8, ROUND_CEILING)
        asked = next(row.result for row in self.rows if row.result is not None)
        given = " and ".join(limits(asked))
        kind = f" with {given}" if given else ""
        proof = f"no value{kind} can exceed {bound}; proved by {bound_name(self.proved_by)}"
        told = [
            textwrap.fill(f"{label}: {note}", WIDTH, subsequent_indent="  ")
            for label, note in notes
        ]
        return "\n".join([*(line.rstrip() for line in lines), proof, *told])

    def _repr_html_(self) -> str:
        from .report.cards import comparison_card

        return comparison_card(self)

    def _cells(self) -> list[list[str]]:
        cells = []
        for record in self.records():
            if math.isnan(record["value"]):
                cells.append([record["method"], "-", "-", "-", "-", "-", record["note"]])
                continue
            cells.append(
                [
                    record["method"],
                    rounded(record["value"], 8, ROUND_FLOOR),
                    _share(record["of_best"]),
                    _percent(record["gap"]),
                    f"{record['agreement_with_best']:.2f}",
                    f"{record['seconds']:.3f}",
                    record["note"],
                ]
            )
        return cells


def _share(part: float) -> str:
    """Return a share rounded down, but for the last digits in which equal answers differ."""
    return "-" if math.isnan(part) else f"{math.floor(1e4 * (part + 1e-12)) / 100:.2f} %"


def _percent(gap: float) -> str:
    if math.isinf(gap):
        return "unproved"
    if 0 < gap < 1e-11:
        return "< 1e-9 %"  # so small a figure is only rounding
    return gap_percent(gap)


def compare(
    X: Any = None,
    methods: Iterable[str | tuple[str, Mapping[str, Any]]] = DEFAULT_METHODS,
    *,
    certify: str | bool = "fast",
    **problem: Any,
) -> Comparison:
    """Run several methods on one problem and set their answers side by side.

    Parameters
    ----------
    X : array, sparse matrix, frame or Table
        The data; or pass `covariance`.
    methods : list of str or (str, dict)
        Names of methods, or a name with its own options: `("gpower", {"norm": "l0"})`.
    certify : {"fast", "full", False}
        How hard to prove. The proof is about the problem, not a method, so it is made once, by
        `method="auto"`, and every row is held against it.
    **problem
        What `sparse_pca` takes: n_components, n_nonzero_coefs, supports, nonnegative, center, ...

    Returns
    -------
    Comparison
        Prints as a table. A method that cannot answer the question has a row that says why.

    Raises
    ------
    ValueError
        When no method can answer, with the reason of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import compare
    >>> A = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.5]])
    >>> table = compare(covariance=A, methods=["threshold", "dspca"], n_nonzero_coefs=2)
    >>> [round(row.value, 6) for row in table.rows]
    [4.0, 4.0]
    """
    with Complaints() as check:
        asked = check(_parsed, methods)
        refuse(
            f"compare takes methods=[...], not {name}"
            for name in ("method", "method_options")
            if name in problem
        )
        given = _resolved(X, problem, certify, check)
    rows: list[Row] = []
    refusals: list[ValueError] = []
    for label, name, own in asked:
        start = time.process_time()
        try:
            result = sparse_pca(given, method=name, method_options=own, certify=False, **problem)
        except ValueError as error:
            refusals.append(error)
            rows.append(Row(label, name, math.nan, math.inf, math.nan, str(error)))
            continue
        seconds = time.process_time() - start
        rows.append(Row(label, name, result.value, math.inf, seconds, result.note, result))
    if len(refusals) == len(rows):
        raise refusals[0]
    answers = [row.result for row in rows if row.result is not None]
    if certify is not False:
        answers.append(sparse_pca(given, method="auto", certify=certify, **problem))
    proof = min((answer.certificate for answer in answers), key=lambda c: c.bound)
    judged = tuple(_judged(row, proof.bound) for row in rows)
    return Comparison(judged, proof.bound, proof.proved_by, _agreement(judged))


def _resolved(X: Any, problem: dict[str, Any], certify: Any, check: Complaints) -> Input:
    """Resolve the data once for all methods and remove their keywords from `problem`.

    What no method could answer is refused before any runs: "auto" answers whatever one can.
    """
    names = ("covariance", "feature_names", "sample_weight")
    data = {name: problem.pop(name) for name in names if name in problem}
    settings = Settings.noted(check, **problem, certify=certify)
    if "random_state" in problem:  # a generator gives all methods one seed
        problem["random_state"] = settings.random_state
    with one_blas_thread:
        return resolved(X, **data, door=settings.door(settings.monitor(), check))


def _parsed(
    methods: Iterable[str | tuple[str, Mapping[str, Any]]],
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (label, name, options) of each; an unknown name is refused before any method runs."""
    if isinstance(methods, str):
        methods = [methods]
    asked: list[tuple[str, str, dict[str, Any]]] = []
    for entry in methods:
        name, own = (entry, {}) if isinstance(entry, str) else (entry[0], dict(entry[1]))
        options = ", ".join(f"{key}={value}" for key, value in own.items())
        asked.append((f"{name} ({options})" if options else name, name, own))
    wrong = [
        f"methods={name!r} is unknown; choose of {', '.join(METHODS)}"
        for _, name, _ in asked
        if name not in METHODS
    ]
    if not asked:
        wrong.append("methods is empty; name at least one method")
    labels = [label for label, _, _ in asked]
    if len(set(labels)) < len(labels):
        wrong.append(f"methods names the same thing twice: {labels}")
    refuse(wrong)
    return asked


def _judged(row: Row, bound: float) -> Row:
    if math.isnan(row.value):
        return row
    if row.value > 0:
        gap = max(0.0, bound / row.value - 1)
    else:
        gap = 0.0 if bound <= 0 else math.inf
    return Row(row.label, row.method, row.value, gap, row.seconds, row.note, row.result)


def _agreement(rows: Sequence[Row]) -> np.ndarray:
    m = len(rows)
    table = np.full((m, m), math.nan)
    for i in range(m):
        for j in range(m):
            if rows[i].result is not None and rows[j].result is not None:
                table[i, j] = overlap(rows[i].supports, rows[j].supports)
    return table


def overlap(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Return the mean Jaccard index of the components under the best matching of the two lists."""
    return float(matched(ones, others)[1].mean())
