"""Would other samples give the same components? The question, asked of many resamples.

Each resample is searched like the whole sample, from starts of its own and from the supports found
on the whole; its components are matched to those by their supports. Nothing is proved about a
resample: frequencies are estimates, and have intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from ..data.inputs import Input, resolved
from ..data.missing import by_rows
from ..data.resamples import reweighted, row_count, varying_features
from ..data.rows import Rows
from ..fit import fitted
from ..numerics.threads import one_blas_thread, ordered_map
from ..problem.components import matched
from ..problem.constraints import Columns
from ..problem.monitor import Monitor, Quiet
from ..problem.parameters import Complaints, choice, integer, number
from ..problem.result import Result, answer_of
from ..report.words import plain, selected, told, wrapped
from ..settings import Settings
from .room import handed_on

SCHEMES = ("halves", "bootstrap")


@dataclass(frozen=True)
class Stability:
    """How often each feature comes back when the rows change; prints as a table.

    Attributes
    ----------
    reference : Result
        The answer on all rows, with its certificate.
    supports : tuple of tuples of ndarray
        The supports of every resample, matched to the components of the reference.
    jaccard : ndarray of shape (n_resamples, n_components)
        How much of each component came back: features in both, as a share of those in either.
    scheme : str
        "halves" (pairs without a common row; of an odd number of rows one is in neither) or
        "bootstrap".
    level : float
        Of the intervals.
    false_selections : float
        At most so many features are selected by mistake, on average.
    candidates : int
        Features that could be: those that vary, are not excluded and are no anchors.
    asked : int
        Resamples that were asked for.
    """

    reference: Result
    supports: tuple[tuple[np.ndarray, ...], ...] = field(repr=False)
    jaccard: np.ndarray = field(repr=False)
    scheme: str
    level: float
    false_selections: float
    candidates: int
    asked: int

    @property
    def complete(self) -> bool:
        """False when the run was stopped before the last resample."""
        return self.n_resamples == self.asked

    @property
    def n_resamples(self) -> int:
        return len(self.supports)

    @property
    def frequencies(self) -> np.ndarray:
        """How often each feature is in each component, shape (n_components, n_features)."""
        counts = np.zeros((len(self.reference.supports), self.reference.n_features))
        for supports in self.supports:
            for j, support in enumerate(supports):
                counts[j, support] += 1.0
        return counts / max(1, self.n_resamples)

    @property
    def any_frequency(self) -> np.ndarray:
        """How often each feature is in some component, shape (n_features,)."""
        counts = np.zeros(self.reference.n_features)
        for supports in self.supports:
            counts[np.unique(np.concatenate(supports))] += 1.0
        return counts / max(1, self.n_resamples)

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Wilson's intervals of `frequencies`, lower and upper ends: where the share of all such
        resamples of these rows lies, of which so many were drawn."""
        return wilson(self.frequencies, self.n_resamples, self.level)

    @property
    def threshold(self) -> float:
        """The frequency at which a feature is selected; above 1 where no frequency is enough.

        Meinshausen and Buehlmann (2010): features that are in some component of at least a share t
        of the halves are on average at most q^2 / ((2 t - 1) p) false ones, q the mean number of
        features in a half, p the number of all. It assumes that the false ones are exchangeable
        and that the method does no worse than guessing. Anchors, excluded and constant features are
        no candidates and count in neither. nan for the bootstrap, which the theorem does not cover.
        """
        if self.scheme != "halves" or not self.supports:
            return float("nan")
        return 0.5 * (1.0 + self._used**2 / (self.false_selections * max(1, self.candidates)))

    @property
    def selected(self) -> np.ndarray:
        """The features that are in some component often enough to reach the threshold; none where
        there is no threshold. Anchors were given, not selected."""
        often = np.flatnonzero(self.any_frequency >= self.threshold)
        return np.setdiff1d(often, list(self._anchors))

    @property
    def _used(self) -> float:
        """The mean number of candidates in a half."""
        return float(np.delete(self.any_frequency, list(self._anchors)).sum())

    @property
    def _anchors(self) -> set[int]:
        return {f for own in self.reference.settings.get("include") or () for f in own}

    @property
    def selected_in(self) -> tuple[frozenset[int], ...]:
        """The selected features of each component: a feature counts where it is met most often."""
        home = np.argmax(self.frequencies, axis=0)
        return tuple(
            frozenset(i for i in self.selected.tolist() if home[i] == j)
            for j in range(len(self.reference.supports))
        )

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per component and feature that was met, the most frequent first."""
        low, high = self.intervals
        often, anywhere = self.frequencies, self.any_frequency
        chosen = self.selected_in
        rows = []
        for j, support in enumerate(self.reference.supports):
            met = np.flatnonzero(often[j] > 0)
            for i in met[np.argsort(-often[j, met], kind="stable")]:
                rows.append(
                    {
                        "component": j + 1,
                        "feature": self.reference.feature_name(int(i)),
                        "in_answer": bool(np.isin(i, support)),
                        "frequency": float(often[j, i]),
                        "low": float(low[j, i]),
                        "high": float(high[j, i]),
                        "any_component": float(anywhere[i]),
                        "selected": int(i) in chosen[j],
                    }
                )
        return rows

    @property
    def sentence(self) -> str:
        """What the selection rests on, in words."""
        if self.scheme != "halves":
            return "Error control needs halves of the rows; the bootstrap has intervals only."
        if not self.supports:
            return "Nothing was counted: the run was stopped too early."
        allowed = f"{self.false_selections:g}"
        if not self.threshold <= 1.0:
            least = self.threshold_at_one
            return (
                "No feature can be selected, however often it came back: a half uses so many of "
                f"the {self.candidates} features that the theorem counts up to {least:.3g} false "
                f"ones even among those in every half, and {allowed} was allowed. The frequencies "
                f"stand. Ask for fewer nonzeros{self._remedy}."
            )
        share = f"{100 * self.threshold:.0f} % of the halves"
        if not self.selected.size:
            return f"None is selected: that needs a feature that is in at least {share}."
        weak = "" if self.selected.size > self.false_selections else ": all of these could be"
        return (
            f"Selected: features in at least {share}; at most {allowed} of them false on average"
            f"{weak}, if false ones are exchangeable and the search does no worse than guessing."
        )

    @property
    def _remedy(self) -> str:
        """The false ones to allow instead; none where these are most of the features of a half."""
        least = math.ceil(self.threshold_at_one)
        return f", or let stability allow {least} false ones" if 2 * least <= self._used else ""

    @property
    def threshold_at_one(self) -> float:
        """The false selections that are controlled by features which are in every half."""
        return (2.0 * self.threshold - 1.0) * self.false_selections

    def __str__(self) -> str:
        lines = []
        if not self.complete:
            lines.append(f"Stopped after {self.n_resamples} of {self.asked} resamples.")
        often, anywhere = self.frequencies, self.any_frequency
        low, high = self.intervals
        chosen = self.selected_in
        for j, support in enumerate(self.reference.supports):
            if not self.n_resamples:
                lines.append(f"component {j + 1}: mean overlap - (Jaccard)")
                continue
            mean = float(self.jaccard[:, j].mean())
            lines.append(f"component {j + 1}: mean overlap {mean:.2f} (Jaccard)")
            shown = np.union1d(support, np.flatnonzero(often[j] >= SHOWN))
            shown = shown[np.argsort(-often[j, shown], kind="stable")]
            names = [plain(self.reference.feature_name(int(i)), 40) for i in shown]
            width = max(map(len, names))
            for i, name in zip(shown, names):
                bar = "#" * round(20 * often[j, i])
                mark = "" if np.isin(i, support) else "  not in the answer on all rows"
                own = {"frequency": often[j, i], "any_component": anywhere[i]}
                pick = f"  {selected(own, self.threshold)}" if int(i) in chosen[j] else ""
                lines.append(
                    f"  {name:<{width}} {100 * often[j, i]:5.0f} %  "
                    f"[{100 * low[j, i]:.0f}, {100 * high[j, i]:.0f}]  {bar:<20}{pick}{mark}"
                )
        how = "halves of the rows" if self.scheme == "halves" else "bootstrap samples"
        last = f"{self.n_resamples} {how}; intervals of {100 * self.level:g} %. {self.sentence}"
        return "\n".join([*map(str.rstrip, lines), *wrapped([last, *told(self.reference)])])

    def _repr_html_(self) -> str:
        from ..report.cards import stability_card

        return stability_card(self)

    def plot(self, ax: Any = None) -> Any:
        """Return the frequency of every feature with its interval, component by component."""
        from ..report.plots import StabilityDisplay

        return StabilityDisplay(self).plot(ax=ax)


SHOWN = 0.25  # features outside the answer that came back at least so often are printed


def wilson(share: np.ndarray, n: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval for a share seen in n trials."""
    if n == 0:
        return np.zeros_like(share), np.ones_like(share)
    z = float(norm.ppf(0.5 + level / 2.0))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def stability(
    X: Any,
    *,
    scheme: str = "halves",
    n_resamples: int = 50,
    level: float = 0.95,
    false_selections: float = 1.0,
    sample_weight: Any = None,
    feature_names: Any = None,
    **question: Any,
) -> Stability:
    """Ask the same question of many resamples of the rows, and count what comes back.

    Parameters
    ----------
    X : what `sparse_pca` takes
        Rows that are read in passes are read again for every resample, with other weights.
    scheme : {"halves", "bootstrap"}
        Complementary halves of the rows, in pairs, or as many rows drawn with replacement.
    n_resamples : int
        How many; at least 2. Halves come in pairs: an odd number is raised by one.
    level : float
        Of the intervals, between 0 and 1.
    false_selections : float
        The number of false features to allow, on average, among those that are selected.
    sample_weight : array of shape (n_samples,)
    feature_names : sequence of str
    **question
        Keywords of `sparse_pca`: `n_components`, `n_nonzero_coefs`, `scale`, `time_limit`, ...;
        `certify` is for the answer on all rows.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 6))
    >>> X[:, 1] += 3 * X[:, 0]
    >>> found = stability(X, n_nonzero_coefs=2, n_resamples=10)
    >>> found.frequencies[0, :2].tolist()
    [1.0, 1.0]
    """
    if answer_of(X) is not None:
        raise TypeError(
            f"X is a {type(X).__name__}, not data; pass stability(X, ...) with the data and the "
            "keywords of the fit, or explain(result, X, stability=50) for an answer that is known"
        )
    with Complaints() as check:
        plan = Plan(
            check(choice, "scheme", scheme, SCHEMES),
            check(integer, "n_resamples", n_resamples, 2),
            check(_level, level),
            check(number, "false_selections", false_selections, 0.0, np.inf, open_low=True),
        )
        settings = handed_on(stability, question, check)
        check(by_rows, settings.missing)
        monitor = settings.monitor()

        def suits(columns: Columns, n: int | None) -> None:
            with Complaints() as more:
                more(settings.question, columns)
                more(_check_rows, n)

        with monitor.interruptible(), one_blas_thread:
            given = resolved(
                X,
                feature_names=feature_names,
                sample_weight=sample_weight,
                door=settings.door(monitor, check, suits),
            )
            return stability_of(given, settings, monitor, plan)


def _level(level: float) -> float:
    try:
        return number("level", level, 0.0, 1.0, open_low=True, open_high=True)
    except ValueError as error:
        raise ValueError(f"{error}; write 0.95 for 95 %") from error


def _check_rows(n: int | None) -> None:
    if n is not None and n < 4:
        raise ValueError(f"X has {n} rows, but resamples need at least 4; pass more rows")


@dataclass(frozen=True)
class Plan:
    """What is drawn how often, and what intervals and selections are judged by."""

    scheme: str
    count: int
    level: float
    errors: float

    @property
    def draws(self) -> int:
        """Halves come in pairs."""
        return self.count + self.count % 2 if self.scheme == "halves" else self.count


def stability_of(
    given: Input,
    settings: Settings,
    monitor: Monitor,
    plan: Plan,
    reference: Result | None = None,
) -> Stability:
    """Return the same for resolved data; `reference` is the answer on all rows, if it is known."""
    n = row_count(given, "stability")
    _check_rows(n)
    if reference is None:
        reference = fitted(given, settings, monitor)
    varying = varying_features(given, settings.center)
    fixed = [reference.settings.get("exclude") or (), *(reference.settings.get("include") or ())]
    candidates = np.setdiff1d(varying, np.concatenate(fixed).astype(np.intp)).size
    job = _Job(given, _searched_again(settings, reference), plan.scheme, n, monitor, reference)
    found: list[tuple[tuple[np.ndarray, ...], np.ndarray]] = []
    # rows that are read in passes have one reader
    n_jobs = 1 if isinstance(given.source, Rows) else settings.n_jobs or 1
    with ordered_map(n_jobs, job) as submit:
        for answer in submit(_Job.run, range(plan.draws)):
            if answer is None:
                break
            found.append(answer)
            monitor.update("stability", message=f"{len(found)} of {plan.draws} resamples")
    if plan.scheme == "halves":  # error control counts pairs
        found = found[: len(found) - len(found) % 2]
    return Stability(
        reference,
        tuple(supports for supports, _ in found),
        np.array([jaccard for _, jaccard in found]).reshape(len(found), len(reference.supports)),
        plan.scheme,
        plan.level,
        plan.errors,
        int(candidates),
        asked=plan.draws,
    )


def _searched_again(settings: Settings, reference: Result) -> Settings:
    """Return the same question without its proof, from the known answer and from fewer starts."""
    again = replace(settings, certify=False, callback=None, n_jobs=1)
    if not settings.search.takes_starts or "n_nonzero_total" in reference.settings:
        return again
    again = replace(again, init=[support.tolist() for support in reference.supports])
    return replace(again, method_options={"effort": 1, **(settings.method_options or {})})


@dataclass(frozen=True)
class _Job:
    given: Input
    settings: Settings
    scheme: str
    n: int
    monitor: Monitor
    reference: Result

    def run(self, number: int) -> tuple[tuple[np.ndarray, ...], np.ndarray] | None:
        """Return the supports of one resample, matched, with their overlaps; None when stopped."""
        quiet = Quiet(self.monitor)
        if quiet.stopped is not None:
            return None
        try:
            result = fitted(reweighted(self.given, self._weights(number)), self.settings, quiet)
        except (KeyboardInterrupt, TimeoutError):
            return None
        except ValueError as error:
            raise ValueError(f"resample {number + 1} cannot be fitted: {error}") from error
        if quiet.stopped is not None:
            return None
        include = self.reference.settings.get("include") or ()
        anchored = [j for j, own in enumerate(include) if own]  # they have an order of their own
        partner, jaccard = matched(self.reference.supports, result.supports, anchored)
        return tuple(result.supports[j] for j in partner), jaccard

    def _weights(self, number: int) -> np.ndarray:
        pair = number // 2 if self.scheme == "halves" else number
        rng = np.random.default_rng([self.settings.random_state, pair])
        if self.scheme == "bootstrap":
            return np.bincount(rng.integers(self.n, size=self.n), minlength=self.n).astype(float)
        weights = np.zeros(self.n)
        order = rng.permutation(self.n)
        half = self.n // 2
        weights[order[:half] if number % 2 == 0 else order[half : 2 * half]] = 1.0
        return weights
