"""The same question when rows have come or gone: `update`.

Sums over the rows take the place of the rows, so that an update costs what has changed. The search
begins with the answer before it, and the new one has a certificate of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..data.checks import OF_SUMS, other_ways_out
from ..data.inputs import Input
from ..data.notes import tell
from ..data.passes import MEMORY_LIMIT, memory_bytes
from ..data.rows import Rows
from ..data.samples import features_of, on_others
from ..data.searched import Searched
from ..data.sources import as_rows, in_blocks, is_lazy, listed_blocks
from ..data.sums import Sums, summed, with_weights
from ..fit import fitted
from ..numerics.threads import one_blas_thread
from ..problem.monitor import Monitor, Progress
from ..problem.result import Result, answer_of
from ..report.growth import update_text
from ..settings import Settings
from .nearby import QUESTION, question_of
from .same import check_same
from .windows import matched

ASKED = (*QUESTION, "method", "method_options", "rank")  # that a result has recorded


@dataclass(frozen=True)
class Change:
    """A component of the new answer, and the one before the update that it continues.

    Attributes
    ----------
    component : int
        From 0.
    before : int or None
        The component that it continues; None for a new one.
    came, went : tuple of str
        Features that it has gained and lost; empty for a new one.
    variance, variance_before : float
        `variance_before` is nan for a new one.
    """

    component: int
    before: int | None
    came: tuple[str, ...]
    went: tuple[str, ...]
    variance: float
    variance_before: float


@dataclass(frozen=True)
class Update:
    """What `update` returns: the new answer, the sums for the next update, and what has changed.

    Attributes
    ----------
    result : Result
        Of the rows that there are now, with its certificate.
    before : Result
    sums : Sums
        Over the rows that there are now.
    added, removed : int
        Rows.
    changes : tuple of Change
        One for each component of `result`.
    faded : tuple of int
        Components of `before` that do not go on.
    repeated : bool
        Whether exactly the rows that were added now had been added last, so that they count twice.
    """

    result: Result
    before: Result = field(repr=False)
    sums: Sums = field(repr=False)
    added: int
    removed: int
    changes: tuple[Change, ...]
    faded: tuple[int, ...]
    repeated: bool = False

    @property
    def same(self) -> bool:
        """Whether every component uses the features that it used before."""
        moved = any(c.before is None or c.came or c.went for c in self.changes)
        return not moved and not self.faded

    def __str__(self) -> str:
        return update_text(self)

    def _repr_html_(self) -> str:
        from ..report.cards import update_card

        return update_card(self)


def update(
    given: Any,
    new_rows: Any = None,
    *,
    without: Any = None,
    X: Any = None,
    sums: Sums | None = None,
    sample_weight: Any = None,
    memory_limit: float | str = MEMORY_LIMIT,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], object] | None = None,
) -> Update:
    """Answer the same question after rows have come or gone, and say what has changed.

    Parameters
    ----------
    given : Update, SparsePCA or Result
        The answer before: what `update` returned, an estimator after `partial_fit`, or any result
        together with `X` or `sums`.
    new_rows : what `sparse_pca` takes, or texts, optional
        Rows to add. Columns are found by their names where both have names; others are left out,
        and a note names those that hold numbers.
    without : what `sparse_pca` takes, optional
        Rows to take away, which were counted before. That is exact, and so for integers only.
    X : what `sparse_pca` takes, optional
        The rows of a Result, which keeps no sums: they are summed first.
    sums : Sums, optional
        Instead of `X`: sums over the rows of a Result.
    sample_weight : array, optional
        Of the new rows; all rows have weights, or none.
    memory_limit : int or str
        Of the sums over `X`: products are kept of all columns, if they fit.
    time_limit, n_jobs, verbose, callback
        As in `sparse_pca`.

    Returns
    -------
    Update

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import sparse_pca, update
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.poisson(3.0, (300, 6)), rng.poisson(3.0, (900, 6))
    >>> old[:, 1] += old[:, 0]
    >>> new[:, 5] += new[:, 4]
    >>> before = sparse_pca(old, n_nonzero_coefs=2)
    >>> after = update(before, new, X=old)
    >>> after.result.n_samples, sorted(after.result.names(0))
    (1200, ['x4', 'x5'])
    >>> window = update(after, without=old)
    >>> window.same, window.result.n_samples
    (True, 900)
    """
    before = _answer(given)
    if new_rows is None and without is None:
        raise ValueError("update has neither new_rows nor without; pass rows that came or went")
    run = {"time_limit": time_limit, "n_jobs": n_jobs, "verbose": verbose, "callback": callback}
    asked = _settings(before, **run)
    monitor = asked.monitor()
    with monitor.interruptible(), one_blas_thread, other_ways_out(OF_SUMS):
        limit = memory_bytes(memory_limit)
        known = _sums_of(given, before, X, sums, limit, monitor)
        new = None if new_rows is None else _rows(before, new_rows, limit)
        notes = on_others(before, new_rows)
        tell(notes)
        if new is not None and sample_weight is not None:
            new = with_weights(new, sample_weight)
        gone = None if without is None else _rows(before, without, limit)
        changed = known.changed(new, gone, monitor)
        repeated = new is not None and changed.last == known.last
        if repeated:
            tell((again(changed.exact),))
        names = before.feature_names or changed.feature_names
        texts = before.info.get("texts")
        result = fitted(Input(changed, names, notes=notes, texts=texts), asked, monitor)
    removed = 0 if gone is None else gone.n_samples or 0
    added = changed.n_samples - known.n_samples + removed
    return replace(compared(before, result, changed, added, removed), repeated=repeated)


def again(exact: bool) -> str:
    """Say that rows count twice, and how to go on if that was not meant."""
    way = "take them away once (without=...)" if exact else "go back to the result before them"
    return (
        "exactly these rows were the last to be added, and count once more now; if that was not "
        f"meant, {way}"
    )


def compared(before: Result, result: Result, sums: Sums, added: int, removed: int) -> Update:
    """Say what has changed: components are matched by the features they share."""
    old = [tuple(before.names(j)) for j in range(len(before.supports))]
    own = [tuple(result.names(j)) for j in range(len(result.supports))]
    goes_on = matched(old, own)
    changes = []
    for j, names in enumerate(own):
        i = goes_on.get(j)
        variance = float(result.variances[j])
        if i is None:
            changes.append(Change(j, None, (), (), variance, float("nan")))
            continue
        came = tuple(name for name in names if name not in old[i])
        went = tuple(name for name in old[i] if name not in names)
        changes.append(Change(j, i, came, went, variance, float(before.variances[i])))
    faded = tuple(i for i in range(len(old)) if i not in goes_on.values())
    return Update(result, before, sums, added, removed, tuple(changes), faded)


def _answer(given: Any) -> Result:
    answer = given.result if isinstance(given, Update) else answer_of(given)
    if answer is None:
        raise TypeError(
            "update begins with what it returned, a Result or an estimator that was fitted, got "
            f"{type(given).__name__}"
        )
    if answer.mean is None:
        raise ValueError(
            "the result came from a covariance matrix, to which no rows can be added; fit the rows"
        )
    if "missing" in answer.settings:
        raise ValueError(
            f"the result was fitted with missing={answer.settings['missing']!r}: sums know nothing "
            "of entries that were missing; fit all rows again"
        )
    return answer


def _settings(before: Result, **run: Any) -> Settings:
    """Return the question that the result has answered; its supports begin the search."""
    return Settings.of(**question_of(before, ASKED), **run).beginning_with(before)


def _sums_of(
    given: Any, before: Result, X: Any, sums: Sums | None, memory_limit: int, monitor: Monitor
) -> Sums:
    """Return the sums over the rows of the answer before."""
    known = given.sums if isinstance(given, Update) else getattr(given, "sums_", None)
    if sums is not None or X is not None:
        if sums is not None and X is not None:
            raise ValueError("update has both X and sums; pass one of them")
        known = sums
        if sums is None:
            known = summed(_rows(before, X, memory_limit), memory_limit, monitor)
    if known is None:
        raise ValueError(
            "a result keeps no sums over its rows; pass its rows as X, or sums that were kept "
            "(Sums.of, SparsePCA.partial_fit)"
        )
    if not isinstance(known, Sums):
        raise TypeError(f"sums must be a Sums, got {type(known).__name__}")
    if (known.n_samples, known.n_features) != (before.n_samples, before.n_features):
        raise ValueError(
            f"the sums are over {known.n_samples} rows x {known.n_features} features that are not "
            f"those of the result ({before.n_samples} x {before.n_features}); pass the rows of the "
            "result"
        )
    told = before.settings
    given = Input(known, before.feature_names)
    check_same(before, Searched(given, told["center"], told["scale"], memory_limit, monitor).data)
    return known


def _rows(before: Result, X: Any, memory_limit: int) -> Rows:
    """Return rows of anything, with columns in the order of the result."""
    X = listed_blocks(X, memory_limit)
    if in_blocks(X) or is_lazy(X):
        return as_rows(X)
    return as_rows(features_of(before, X))
