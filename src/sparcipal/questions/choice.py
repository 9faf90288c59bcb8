"""How many components, and how many nonzeros? A map over both, judged on rows that were held out.

Each fold leaves some rows out, follows a path of nonzeros for every number of components on the
others, and measures the share of the held-out variance that is explained (`data/explained.py`). The
same on tables of noise, whose columns are shuffled one by one, says how much is explained where
there is nothing to find. In sample, each answer has its certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.explained import shares_of_others
from ..data.inputs import Input, resolved
from ..data.missing import by_rows
from ..data.resamples import filled, reweighted, row_count, shuffled, unfilled
from ..data.rows import Rows
from ..data.searched import Searched
from ..numerics.threads import one_blas_thread, ordered_map
from ..path import path_among
from ..problem.constraints import Columns
from ..problem.monitor import Monitor, Quiet
from ..problem.parameters import Complaints, integer, integers
from ..problem.result import Result
from ..report.words import told, wrapped
from ..settings import Settings
from .room import Tried, fits, handed_on, most, with_room

COMPONENTS = range(1, 6)
NONZEROS = (2, 3, 5, 8, 12, 20)
NOT_TAKEN = ("init", "include", "rank", "method_options")  # keywords of `sparse_pca`
ABOVE_NOISE = 2.0  # standard deviations of the noise by which a component must beat it


@dataclass(frozen=True)
class Choice:
    """Shares of variance for every number of components and of nonzeros, and a recommendation.

    Arrays have a row per number of components and a column per number of nonzeros; nan where
    components of that size do not fit, or where a stopped run did not arrive.

    Attributes
    ----------
    n_components, n_nonzero_coefs : tuple of int
    held_out, error : ndarray
        The share of the variance of held-out rows that is explained, mean over the folds, and its
        standard error.
    in_sample, bound : ndarray
        The share of the variance that the components have in sample, and the proven upper bound of
        the largest such share.
    noise, noise_spread : ndarray
        The held-out share on shuffled tables: mean and standard deviation; nan without any.
    noise_gain, noise_gain_spread : ndarray
        What such tables gain by going on to that number of components from the one before it, mean
        and standard deviation: a gain is recommended beyond the mean and two of these.
    results : tuple of tuples of Result or None
        In sample, each with its certificate.
    folds, permutations : int
    best : (int, int)
        The recommended numbers of components and of nonzeros.
    reason : str
    complete : bool
        False when the run was stopped.
    """

    n_components: tuple[int, ...]
    n_nonzero_coefs: tuple[int, ...]
    held_out: np.ndarray
    error: np.ndarray
    in_sample: np.ndarray
    bound: np.ndarray
    noise: np.ndarray
    noise_spread: np.ndarray
    noise_gain: np.ndarray
    noise_gain_spread: np.ndarray
    results: tuple[tuple[Result | None, ...], ...] = field(repr=False)
    folds: int
    permutations: int
    best: tuple[int, int]
    reason: str
    complete: bool

    @property
    def result(self) -> Result | None:
        """The recommended answer, fitted on all rows."""
        row = self.n_components.index(self.best[0])
        return self.results[row][self.n_nonzero_coefs.index(self.best[1])]

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per cell of the map."""
        return [
            {
                "components": k,
                "nonzeros": s,
                "held_out": float(self.held_out[i, j]),
                "error": float(self.error[i, j]),
                "noise": float(self.noise[i, j]),
                "in_sample": float(self.in_sample[i, j]),
                "bound": float(self.bound[i, j]),
                "recommended": (k, s) == self.best,
            }
            for i, k in enumerate(self.n_components)
            for j, s in enumerate(self.n_nonzero_coefs)
        ]

    def __str__(self) -> str:
        head = f"{'components':>10}" + "".join(f"{f's={s}':>10}" for s in self.n_nonzero_coefs)
        lines = ["share of the held-out variance, %", head]
        for i, k in enumerate(self.n_components):
            cells = []
            for j, s in enumerate(self.n_nonzero_coefs):
                known = not np.isnan(self.held_out[i, j])
                mark = "*" if (k, s) == self.best else " "
                text = f"{100 * self.held_out[i, j]:.1f}{mark}" if known else "- "
                cells.append(f"{text:>10}")
            lines.append(f"{k:>10}" + "".join(cells))
        if not self.complete:
            lines.append("Stopped before the end: what is missing is not shown.")
        elif np.isnan(self.held_out).any():
            lines.append("- : the features do not suffice for so many components of that size")
        said = [self.reason, *(told(self.result) if self.result else ())]
        return "\n".join([*map(str.rstrip, lines), *wrapped(said)])

    def _repr_html_(self) -> str:
        from ..report.cards import choice_card

        return choice_card(self)

    def plot(self, axes: Any = None) -> Any:
        """Return the map of held-out shares, and curves with the noise and the proven bound."""
        from ..report.plots import ChoiceDisplay

        return ChoiceDisplay(self).plot(axes)


def choose(
    X: Any,
    *,
    n_components: Iterable[int] | None = None,
    n_nonzero_coefs: Iterable[int] | None = None,
    folds: int = 5,
    permutations: int = 5,
    sample_weight: Any = None,
    feature_names: Any = None,
    **question: Any,
) -> Choice:
    """Choose the numbers of components and of nonzeros by the variance of held-out rows.

    A further component is recommended while it adds more to the share of the held-out variance
    than noise adds to itself; of the numbers of nonzeros, the smallest whose share is within one
    standard error of the best.

    Parameters
    ----------
    X : what `sparse_pca` takes
        Rows that are read in passes are read again for every fold, with other weights.
    n_components, n_nonzero_coefs : iterables of int
        The numbers to try; pairs that do not fit are left out. By default 1 to 5 components of 2,
        3, 5, 8, 12 and 20 nonzeros, as far as the columns and the rows of a fold suffice.
    folds : int
        Parts of the rows, each held out once; at least 2.
    permutations : int
        Tables of noise: X with its columns shuffled one by one. 0 leaves them out; rows that are
        read in passes cannot be shuffled.
    sample_weight : array of shape (n_samples,)
    feature_names : sequence of str
    **question
        Keywords of `sparse_pca`: `supports`, `nonnegative`, `scale`, `certify` (in sample),
        `time_limit`, `n_jobs`, `random_state`, ...

    Returns
    -------
    Choice

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import choose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 9))
    >>> X[:, :3] += 3 * rng.standard_normal((120, 1))
    >>> X[:, 3:6] += 3 * rng.standard_normal((120, 1))
    >>> choose(X, n_components=[1, 2, 3], n_nonzero_coefs=[2, 3]).best
    (2, 3)
    """
    with Complaints() as check:
        ours = n_components is None, n_nonzero_coefs is None
        ks = check(_grid, "n_components", n_components, COMPONENTS, check)
        sizes = check(_grid, "n_nonzero_coefs", n_nonzero_coefs, NONZEROS, check)
        n_folds = check(integer, "folds", folds, 2, "each part of the rows is held out once")
        shuffles = check(integer, "permutations", permutations, 0)
        check(_check_keywords, question)
        taken = {name: question[name] for name in question if name not in NOT_TAKEN}
        settings = handed_on(choose, taken, check)
        check(by_rows, settings.missing)
        monitor = settings.monitor()

        def tried(columns: Columns, n: int | None) -> Tried:
            return with_room(Tried(ks or (), sizes or (), n_folds, n, ours), settings, columns)

        def suits(columns: Columns, n: int | None) -> None:
            tried(columns, n)

        with monitor.interruptible(), one_blas_thread:
            given = resolved(
                X,
                feature_names=feature_names,
                sample_weight=sample_weight,
                door=settings.door(monitor, check, suits),
            )
            n = row_count(given, "choose")
            asked = tried(Columns(given.n_features, given.feature_names), n)
            if isinstance(given.source, Rows):
                shuffles = 0
            grid = _Grid(given, settings, asked.ks, asked.sizes, n, n_folds, monitor)
            return _chosen(grid, shuffles)


def _grid(
    name: str, given: Iterable[int] | None, default: Iterable[int], check: Complaints
) -> tuple[int, ...]:
    if given is None:
        return tuple(default)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list or range of integers, got {given!r}")
    values = list(given)
    if not values:
        raise ValueError(f"{name} is empty; pass for instance range(1, 6)")
    return tuple(sorted(set(integers(name, values, 1, check))))


def _check_keywords(question: dict[str, Any]) -> None:
    if question.get("method", "auto") != "auto":
        raise ValueError(
            f"method={question['method']!r}: choose knows method='auto' only; leave method out"
        )
    given = [name for name in NOT_TAKEN if question.get(name) is not None]
    if given:
        raise ValueError(f"choose does not take {', '.join(given)}; leave them out")


@dataclass(frozen=True)
class _Grid:
    """The data, the numbers to try and the folds."""

    given: Input
    settings: Settings
    ks: tuple[int, ...]
    sizes: tuple[int, ...]
    n: int
    folds: int
    monitor: Monitor

    @property
    def columns(self) -> Columns:
        return Columns(self.given.n_features, self.given.feature_names)

    @property
    def room(self) -> list[int]:
        """How many nonzeros fit with each number of components."""
        available = self.settings.available(self.columns)
        return [most(self.settings, k, available) for k in self.ks]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ks), len(self.sizes)

    def places_of(self, k: int) -> list[int]:
        """Return the places of the numbers of nonzeros that fit with k components."""
        available = self.settings.available(self.columns)
        sizes = enumerate(self.sizes)
        return [j for j, s in sizes if fits(self.settings, k, s, available)]

    def fold(self, number: int) -> np.ndarray:
        """Return 1 for the rows that are held out, 0 for the others."""
        order = np.random.default_rng([self.settings.random_state, 1]).permutation(self.n)
        held = np.zeros(self.n)
        held[order[number :: self.folds]] = 1.0
        return held

    def held_out(self, number: int, noise: int | None = None) -> np.ndarray | None:
        """Return the held-out shares of one fold, or of a table of noise; None when stopped."""
        quiet = Quiet(self.monitor)
        given = unfilled(self.given)
        if noise is not None:
            given = shuffled(given, np.random.default_rng([self.settings.random_state, 2, noise]))
        held = self.fold(number)
        shares = np.full(self.shape, np.nan)
        settings = replace(self.settings, certify=False, callback=None, n_jobs=1)
        try:
            rest, judge = filled(reweighted(given, 1.0 - held)), reweighted(given, held)
            cells: list[tuple[int, int]] = []
            results: list[Result] = []
            searched = Searched(rest, settings.center, settings.scale, settings.memory_limit, quiet)
            for i, k in enumerate(self.ks):
                asked, places = replace(settings, n_components=k), self.places_of(k)
                sizes = [self.sizes[j] for j in places]
                path = path_among(searched, asked, self.columns, sizes, quiet, thorough=False)
                if quiet.stopped is not None:
                    return None
                cells += [(i, j) for j in places]
                results += path
            found = shares_of_others(results, rest, judge, settings.memory_limit)
            for cell, share in zip(cells, found, strict=True):
                shares[cell] = share
            if np.isnan(found).any():
                raise ValueError("the rows that it holds out are the means of the others")
        except (KeyboardInterrupt, TimeoutError):
            return None
        except ValueError as error:
            if noise is not None:  # a table of noise may come out so, and says nothing then
                return np.full(self.shape, np.nan)
            raise ValueError(
                f"fold {number + 1} of {self.folds}: {error}; ask for fewer folds"
            ) from error
        return shares

    def job(self, task: tuple[int, int | None]) -> np.ndarray | None:
        return None if self.monitor.stopped is not None else self.held_out(*task)

    def in_sample(self) -> list[list[Result | None]]:
        """Return the answers on all rows, with their proofs; None where the run was stopped
        before."""
        settings = self.settings
        searched = Searched(
            self.given, settings.center, settings.scale, settings.memory_limit, self.monitor
        )
        rows: list[list[Result | None]] = []
        for k in self.ks:
            row: list[Result | None] = [None] * len(self.sizes)
            if not rows or self.monitor.stopped is None:
                asked, places = replace(settings, n_components=k), self.places_of(k)
                sizes = [self.sizes[j] for j in places]
                for j, result in zip(
                    places, path_among(searched, asked, self.columns, sizes, self.monitor)
                ):
                    row[j] = result
            rows.append(row)
        return rows


def _chosen(grid: _Grid, permutations: int) -> Choice:
    tasks: list[tuple[int, int | None]] = [(number, None) for number in range(grid.folds)]
    tasks += [(noise % grid.folds, noise) for noise in range(permutations)]
    parts: list[np.ndarray | None] = []
    # rows that are read in passes have one reader
    n_jobs = 1 if isinstance(grid.given.source, Rows) else grid.settings.n_jobs or 1
    with ordered_map(n_jobs, grid) as submit:
        for part in submit(_Grid.job, tasks):
            parts.append(part)
            grid.monitor.update("choose", message=f"{len(parts)} of {len(tasks)} parts")
    results = grid.in_sample()
    held = [part for part in parts[: grid.folds] if part is not None]
    null = [p for p in parts[grid.folds :] if p is not None and not np.isnan(p).all()]
    nothing = np.full(grid.shape, np.nan)
    shares = np.array(held) if held else nothing[None]
    noises = np.array(null) if null else nothing[None]
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(held)) if len(held) > 1 else nothing
    mean = shares.mean(axis=0)
    gains = np.diff(noises, axis=1, prepend=np.nan)
    best, reason = recommended(grid.ks, grid.sizes, mean, error, noises, grid.room)
    complete = all(part is not None for part in parts) and grid.monitor.stopped is None
    if not complete:
        known = f"{len(held)} of {grid.folds} folds"
        known += f" and {len(null)} of {permutations} tables of noise" if permutations else ""
        reason = reason.replace("Recommended:", f"Recommended so far, from {known}:")

    def shared(figure: str) -> np.ndarray:
        return np.array(
            [
                [np.nan if r is None else getattr(r, figure) / r.total_variance for r in row]
                for row in results
            ]
        )

    return Choice(
        grid.ks,
        grid.sizes,
        mean,
        error,
        shared("value"),
        shared("bound"),
        *_spread(noises),
        *_spread(gains),
        tuple(tuple(row) for row in results),
        grid.folds,
        permutations,
        best,
        reason,
        complete,
    )


def _spread(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation over tables of noise; nan where one does not say."""
    few = np.full(shares.shape[1:], np.nan)
    return shares.mean(axis=0), shares.std(axis=0, ddof=1) if len(shares) > 1 else few


def recommended(
    ks: Sequence[int],
    sizes: Sequence[int],
    held_out: np.ndarray,
    error: np.ndarray,
    noises: np.ndarray,
    room: Sequence[int],
) -> tuple[tuple[int, int], str]:
    """Return the numbers of components and of nonzeros, and the reason in a sentence or two.

    `noises` has the held-out shares of every table of noise, shape (permutations, ...); `room` says
    how many nonzeros fit with each number of components.
    """
    row, why = _components(ks, sizes, held_out, noises)
    shares = held_out[row]
    if np.isnan(shares).all():
        return (ks[row], sizes[0]), "Nothing was measured: the run was stopped too early."
    top = int(np.nanargmax(shares))
    least = shares[top] - (0.0 if np.isnan(error[row, top]) else error[row, top])
    column = int(np.flatnonzero(shares >= least)[0])
    s = sizes[column]
    many = f"{s} nonzeros explain" if s > 1 else "1 nonzero explains"
    beside = f" with {ks[row]} component{'s' if ks[row] > 1 else ''}" if len(ks) > 1 else ""
    if column == top:
        size = (
            f"{many} {100 * shares[top]:.1f} % of the held-out variance, the most of "
            f"the numbers tried{beside}"
        )
    else:
        size = (
            f"{many} {100 * shares[column]:.1f} % of the held-out variance, within "
            f"one standard error of the best{beside}, {100 * shares[top]:.1f} % with {sizes[top]}"
        )
    if len(sizes) > 1 and column == np.flatnonzero(~np.isnan(shares))[-1]:
        more = "more may explain more" if s < room[row] else "there is no room for more"
        size += f", and the largest of them: {more}"
    reached = _by_noise(noises[:, row, column])
    if shares[column] <= 0.0:
        size += ". That is nothing: the means of the columns predict held-out rows as well"
    elif shares[column] <= reached:
        size += (
            f". That is not above noise: noise of the same columns reaches {100 * reached:.1f} %"
        )
    return (ks[row], s), f"Recommended: {ks[row]} x {s}.{why} {size}."


def _by_noise(shares: np.ndarray) -> float:
    """Return what noise reaches, by the shares of the tables of noise; 0 if not measured."""
    if np.isnan(shares).any():
        return 0.0
    spread = float(shares.std(ddof=1)) if shares.size > 1 else 0.0
    return float(shares.mean()) + ABOVE_NOISE * spread


def _components(
    ks: Sequence[int],
    sizes: Sequence[int],
    held_out: np.ndarray,
    noises: np.ndarray,
) -> tuple[int, str]:
    """Return the row of the last component that adds more than noise does, and why it is last."""
    row = 0
    for i in range(1, len(ks)):
        common = np.flatnonzero(~np.isnan(held_out[i]) & ~np.isnan(held_out[i - 1]))
        if common.size == 0:
            return row, f" {ks[i]} components do not fit beside any common number of nonzeros."
        j = int(common[-1])
        gain = held_out[i, j] - held_out[i - 1, j]
        needed = _by_noise(noises[:, i, j] - noises[:, i - 1, j])
        if not gain > needed:
            beyond = f"noise of the same columns reaches {100 * needed:.1f} points"
            beyond = beyond if needed > 0.0 else "that is no gain"
            return row, (
                f" Going on to {ks[i]} components adds {100 * gain:.1f} points of held-out "
                f"variance at {sizes[j]} nonzeros: {beyond}."
            )
        row = i
    if np.isnan(noises).all():
        last = "each number of components up to it adds something; noise was not measured"
    else:
        last = "each number of components up to it adds more than noise does"
    return row, f" It is the largest number tried: {last}." if len(ks) > 1 else ""
