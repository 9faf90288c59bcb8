"""Everything that is known of an answer on one page, in plain words: `explain`.

What was found and proved, how sure each feature is, what else could be in, whether components
repeat each other and, if asked, what other rows would give. Each part is a question that has a
function of its own; one that has no answer for this kind of result becomes a sentence that says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.explained import Explained, explained
from ..data.inputs import Input, resolved
from ..data.missing import by_rows
from ..data.passes import MEMORY_LIMIT
from ..data.rows import Rows
from ..data.table import Table
from ..numerics.threads import one_blas_thread
from ..problem.answers import Alternatives
from ..problem.constraints import Columns
from ..problem.monitor import Progress
from ..problem.parameters import Complaints, flag, integer, known_keywords, number, seconds
from ..problem.result import Result
from ..report import explaining
from ..report.answers import unlisted
from ..settings import Settings
from .beside import Wanted
from .choice import Choice, choose
from .nearby import (
    MOST,
    QUESTION,
    Answers,
    NotAnswered,
    answer_of,
    data_of,
    question_of,
    refuse_pairs,
)
from .resampling import Plan, Stability, stability_of
from .room import around
from .same import Given, in_order, its_features, only_its_data, recheck, refuse_damaged

FORCE = 3  # outsiders of each component with proofs of their own, unless the user says
LEVEL, ERRORS = 0.95, 1.0  # of the intervals, and false selections, as in `stability`


@dataclass(frozen=True)
class Explanation:
    """What is known of an answer; prints as a page of text and shows as one in a notebook.

    Attributes
    ----------
    result : Result
        The answer.
    alternatives : Alternatives or None
        What else is nearly as good; None where that has no answer, and `unanswered` says why.
    unanswered : str
        Why there are no alternatives, or no lists of them; empty where there are.
    unchecked : str
        Why the bounds of the answer could not be rechecked, so that what they prove is the word of
        a file; empty where they were, as `verify` does. An answer that is refused has no page.
    share : float
        The share of the variance of the rows that all components explain together, by regression
        on their scores; nan where there are none, as for a covariance or one of pairs.
    correlations : ndarray of shape (n_components, n_components) or None
        Of the scores of the rows.
    stability : Stability or None
        What halves of the rows give, if that was asked.
    resamples : int
        How many halves were asked for.
    choice : Choice or None
        What other numbers of components and nonzeros give on held-out rows, if that was asked.
    uncompared : str
        Why they were not compared though that was asked; empty otherwise.
    stopped : bool
        Whether time ended before all that was asked had begun.
    """

    result: Result
    alternatives: Alternatives | None
    unanswered: str
    unchecked: str
    share: float
    correlations: np.ndarray | None
    stability: Stability | None = None
    resamples: int = 0
    choice: Choice | None = None
    uncompared: str = ""
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Whether every question that has an answer was answered to its end."""
        listed = self.alternatives is None or self.alternatives.complete
        compared = self.choice is None or self.choice.complete
        counted = self.stability is not None and self.stability.complete
        return listed and compared and not self.stopped and (counted or self.resamples == 0)

    @property
    def sections(self) -> dict[str, list[str]]:
        """The sentences of the page under their headings."""
        return explaining.sections(self)

    def __str__(self) -> str:
        return explaining.explanation_text(self)

    def _repr_html_(self) -> str:
        return explaining.explanation_html(self)

    def to_html(self) -> str:
        """Return the page as an HTML document that needs no other file."""
        return explaining.explanation_page(self)

    def to_json(self) -> str:
        """Return the sentences and the figures behind them; what is not known is null."""
        return explaining.explanation_json(self)


@known_keywords
def explain(
    given: Any,
    X: Any = None,
    *,
    covariance: Any = None,
    within: float = 0.01,
    force: int = FORCE,
    stability: int = 0,
    choice: bool = False,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], object] | None = None,
    sample_weight: Any = None,
    feature_names: Iterable[str] | None = None,
    memory_limit: float = MEMORY_LIMIT,
) -> Explanation:
    """Say on one page what was found, what is proved of it and what else is nearly as good.

    Parameters
    ----------
    given : Result or fitted SparsePCA
        The answer.
    X : data
        What it came from.
    covariance : array of shape (n_features, n_features)
        Instead of X.
    within : float
        Answers that explain at least 1 - within of what a component explains are nearly as good.
    force : int
        For so many outsiders of each component also prove what using them costs.
    stability : int
        If not 0, also ask the same question of so many halves of the rows; at least 2.
    choice : bool
        Also compare the numbers of components and nonzeros with others near them, by the variance
        of held-out rows.
    time_limit : float
        Seconds; what is known then is returned, and the page says that it is incomplete.
    n_jobs, verbose, callback, sample_weight, feature_names, memory_limit
        As for `sparse_pca`.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import explain, sparse_pca
    >>> A = np.diag([3.0, 3.0, 2.0, 1.0])
    >>> A[0, 1] = A[1, 0] = 1.0
    >>> page = explain(sparse_pca(covariance=A, n_nonzero_coefs=2), covariance=A)
    >>> page.complete
    True
    >>> page.sections["How sure each feature is"][-1]
    'no answer without x1 comes within 24.9 % of the best: proved (...)'
    """
    answer = answer_of(given)
    if answer is None:
        raise TypeError(
            f"given is a {type(given).__name__}; pass a result or a fitted SparsePCA, and the data "
            "it came from as X"
        )
    refuse_damaged(answer)
    run: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "callback": callback}
    with only_its_data(answer), Complaints() as check:
        within = check(number, "within", within, 0.0, 1.0)
        force = check(integer, "force", force, 0)
        count = check(_halves, stability)
        compared = check(flag, "choice", choice)
        limit = check(seconds, "time_limit", time_limit)
        asks = question_of(answer, (*QUESTION, "method", "method_options", "rank"))
        asked = Settings.noted(check, **asks, **run, memory_limit=memory_limit)
        if count:
            check(by_rows, asked.missing)
        start = time.monotonic()
        source = resolved(
            X,
            covariance,
            feature_names=feature_names,
            sample_weight=sample_weight,
            door=asked.door(asked.monitor(), check, its_features(answer)),
        )
        source = in_order(answer, source)
        _check(source, count)
    sums = _sums(answer, source)
    timed, wanted = replace(asked, time_limit=limit), Wanted(within, MOST, drop=True, force=force)
    near, why, unchecked = _near(answer, source, timed, wanted, Given(X, covariance, sample_weight))
    page = Explanation(
        answer,
        near,
        why,
        unchecked,
        float("nan") if sums is None else sums.share,
        None if sums is None else sums.correlations,
        resamples=count,
    )
    ended = near is not None and near.status in ("interrupted", "time_limit")
    for wanted, answered in ((compared, _with_choice), (count > 0, _with_stability)):
        left = None if limit is None else limit - (time.monotonic() - start)
        if wanted and (ended or (left is not None and left <= 0.0)):
            return replace(page, stopped=True)
        if wanted:
            page = answered(page, source, replace(asked, time_limit=left))
    return page


def _near(
    answer: Result, source: Input, asked: Settings, wanted: Wanted, given: Given
) -> tuple[Alternatives | None, str, str]:
    """Return what is nearly as good, or why that is not known, and why bounds were not rechecked.
    Refuses the data of another answer, and an answer that claims what does not hold for its
    data."""
    monitor = asked.monitor()
    with monitor.interruptible(), one_blas_thread:
        try:
            refuse_pairs(asked)
        except NotAnswered as error:
            data_of(answer, source, asked, monitor)
            return None, error.reason, recheck(answer, given, source)
        answers = Answers(source, asked, monitor, answer, wanted)
        unchecked = answers.recheck(given)
        near = answers.found()
    return near, "" if near.components else unlisted(near), unchecked


def _halves(stability: Any) -> int:
    count = integer("stability", stability, 0)
    if count == 1:
        raise ValueError("stability=1: halves come in pairs; pass 0 for none, or at least 2")
    return count


def _with_choice(page: Explanation, source: Input, asked: Settings) -> Explanation:
    why = _incomparable(page.result, source)
    if why:
        return replace(page, uncompared=why)
    return replace(page, choice=_choice(page.result, source, asked))


def _with_stability(page: Explanation, source: Input, asked: Settings) -> Explanation:
    monitor, plan = asked.monitor(), Plan("halves", page.resamples, LEVEL, ERRORS)
    with monitor.interruptible(), one_blas_thread:
        found = stability_of(source, asked, monitor, plan, page.result)
    return replace(page, stability=found)


def _incomparable(answer: Result, source: Input) -> str:
    """Return why held-out rows cannot be asked about other numbers; empty where they can."""
    if not isinstance(source.source, Table | Rows):
        return "other numbers are compared on held-out rows, and a covariance has none; pass X"
    if answer.settings.get("include"):
        return (
            "other numbers are not compared where features are required (include); fit without "
            "them to see others"
        )
    if "n_nonzero_total" in answer.settings:
        return (
            "other numbers are not compared where components share their nonzeros; fit with a "
            "number for each"
        )
    return ""


def _choice(answer: Result, source: Input, asked: Settings) -> Choice:
    """Return the map around the numbers of the answer."""
    k, s = len(answer.supports), max(answer.settings["n_nonzero_coefs"])
    ks, sizes = around(
        asked, k, s, asked.available(Columns(source.n_features, source.feature_names))
    )
    names = ("supports", "objective", "uncorrelated", "nonnegative", "center", "scale", "exclude")
    question = question_of(answer, names)
    return choose(
        source, n_components=ks, n_nonzero_coefs=sizes, permutations=3, certify=False,
        missing=asked.missing, memory_limit=asked.memory_limit, n_jobs=asked.n_jobs,
        time_limit=asked.time_limit, callback=asked.callback, **question,
    )  # fmt: skip


def _check(source: Input, resamples: int) -> None:
    """Refuse resamples of a covariance."""
    if resamples and not isinstance(source.source, Table | Rows):
        raise ValueError(f"stability={resamples} needs the rows of the data; pass X, or 0 for none")


def _sums(answer: Result, source: Input) -> Explained | None:
    """Return what the components explain together; a covariance, or one of pairs, has no rows to
    ask."""
    pairs = source.gaps is not None and source.gaps.pairs
    if pairs or answer.mean is None or not isinstance(source.source, Table | Rows):
        return None
    with one_blas_thread:
        return explained(answer, source.source, source.sample_weight)
