"""SparsePCA: the scikit-learn face."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A stand-in, where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:  # type: ignore[no-redef]
        return method


from .data.checks import OF_SUMS, other_ways_out
from .data.columns import Wanted
from .data.frames import column_names, from_frame, is_frame
from .data.genes import is_anndata
from .data.inputs import Door, Input, resolved
from .data.notes import tell
from .data.passes import MEMORY_LIMIT, memory_bytes
from .data.rows import Rows, memory_map
from .data.samples import features_of, fitted_columns, has_texts
from .data.scores import RULES_WITH_SCORES, Scorer, scores_of_blocks
from .data.sources import as_rows, in_blocks, is_lazy, listed_blocks
from .data.sums import Sums, summed, with_weights
from .data.table import Table, as_table, table_of
from .numerics.threads import one_blas_thread
from .problem.constraints import Columns, named
from .problem.monitor import Monitor, Progress
from .problem.parameters import Complaints, known_keywords
from .problem.result import Certificate, Result, answer_of
from .problem.saving import sums_path
from .settings import Settings

# New samples have no rule for their gaps; the fit may have.
_TO_SCORE = f"fill them, or fit with {RULES_WITH_SCORES}, which score rows with gaps too"


class _Lazily:
    """Scores of lazy data are lazy, too.

    This class stands before the transformer whose methods scikit-learn wraps: the wrapper, which
    makes frames for `set_output`, would compute what is lazy.
    """

    def transform(self, X: Any) -> Any:
        """Scores of the samples on the components: (X - mean) / scale @ components'.

        Only the columns that some component uses are read; a row's scores depend on that row alone.

        Parameters
        ----------
        X : what `fit` takes
            A function that returns blocks of rows and a memory map are scored block by block. What
            dask makes is scored lazily: the answer is a dask array, or after
            `set_output(transform="pandas")` a dask frame.
        """
        model: Any = self
        if is_lazy(X):
            return model._lazy_scores(X)
        return _with_row_names(super().transform(X), X)  # type: ignore[misc]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit`, and the scores of the same samples."""
        model: Any = self
        if is_lazy(X):
            return model.fit(X, y, **fit_params)._lazy_scores(X)
        return _with_row_names(super().fit_transform(X, y, **fit_params), X)  # type: ignore[misc]


def _with_row_names(scores: Any, X: Any) -> Any:
    """Give a pandas frame of scores the names of the rows of a Table or AnnData; scikit-learn
    keeps those of frames only."""
    names = X.sample_names if isinstance(X, Table) else None
    if is_anndata(X):
        names = tuple(map(str, X.obs_names))
    if names is None or len(names) != len(scores) or not hasattr(scores, "set_axis"):
        return scores
    return scores.set_axis(list(names), axis=0)


class _Scores(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Scores of data that are not lazy; scikit-learn wraps `transform` for `set_output`."""

    result_: Result
    n_features_in_: int
    feature_names_in_: np.ndarray
    _selects: bool = False  # whether some columns of the fitted frame were set aside

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        with other_ways_out(_TO_SCORE):
            return self._scores(X)

    def _scores(self, X: Any) -> np.ndarray:
        scorer = Scorer(self.result_)
        X = self._as_fitted(X)
        if isinstance(X, Table):
            self._check_columns(X.shape[1], X.feature_names)
            if scorer.takes_gaps:
                return scorer(X._check_but_for_gaps().X)
            return scorer((X if memory_map(X.X) is not None else as_table(X)).X)
        if in_blocks(X):
            rows = as_rows(X, gaps=scorer.takes_gaps)
            self._check_columns(rows.n_features, rows.feature_names)
            return scores_of_blocks(scorer, rows.blocks())
        on_disk = type(X) is np.memmap and X.ndim == 2 and X.dtype.kind in "fiub"
        try:
            if on_disk:  # a check would read it all
                return scorer(validate_data(self, X, reset=False, skip_check_array=True))
            names = getattr(self, "feature_names_in_", None)
            found = Table(
                validate_data(self, X, reset=False, **_CHECKS),
                None if names is None else tuple(names),
            )
            return scorer((found._check_but_for_gaps() if scorer.takes_gaps else found._check()).X)
        except ValueError as error:
            told = str(error)
            if "now missing" in told:
                raise
            more = "unseen at fit time" in told and "now missing" not in told
            if more or "must be in the same order" in told:  # the remedy: scikit-learn has none
                raise ValueError(
                    f"{told.rstrip()}\nWrite X[list(model.feature_names_in_)], or use "
                    "model.result_.transform(X), which finds columns by their names."
                ) from error
            if is_frame(X):
                from_frame(X, Wanted(index=False, aside=False))  # names columns that hold text
            raise

    def _as_fitted(self, X: Any) -> Any:
        """Return the features of a frame, if some of its columns were set aside in the fit; the
        matrix and the names of AnnData; a list of blocks as a function that returns them; texts,
        after a fit of texts, as their words."""
        if self.result_.info.get("texts") and has_texts(X):
            return features_of(self.result_, X)
        X = listed_blocks(X, memory_bytes(self.memory_limit))
        if is_anndata(X):
            return as_table(X)
        if not (self._selects and is_frame(X)) or is_lazy(X):
            return X
        wanted = Wanted(columns=tuple(self.feature_names_in_), index=False, empty=True)
        return table_of(from_frame(X, wanted))

    def _check_columns(self, width: int, names: tuple[str, ...] | None) -> None:
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but SparsePCA is expecting {self.n_features_in_} "
                "features as input"
            )
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None and names is not None:
            differ = [i for i, (a, b) in enumerate(zip(seen, names)) if a != b]
            if differ:
                raise ValueError(
                    f"feature names differ from those seen in fit, first at feature {differ[0]}: "
                    f"{names[differ[0]]!r} instead of {seen[differ[0]]!r}"
                )


class SparsePCA(_Lazily, _Scores, CallbackSupportMixin, BaseEstimator):
    """PCA with few nonzero loadings, and a certificate of how good they are.

    Finds `n_components` components with at most `n_nonzero_coefs` nonzero loadings each that
    jointly explain as much variance as possible, and proves how far from the optimum they can be at
    most.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    n_nonzero_coefs : int, one int per component, or {"total": int}, default=None
        At most so many nonzero loadings each, or for all components together. None means 10, or
        n_features // n_components if that is less.
    supports : {"disjoint", "free", "orthogonal", "common"}, default="disjoint"
        A feature serves in one component only; in any; in any while the components are orthogonal;
        or all components use one set of `n_nonzero_coefs` features.
    objective : {"sum", "adjusted"}, default=None
        Whether the variances of the components are added, or what each explains beyond those before
        it in the best order. None means "adjusted" for free supports and "sum" otherwise.
    uncorrelated : bool, default=False
        Components whose scores are uncorrelated, for free and disjoint supports.
    nonnegative : bool, default=False
        Loadings that are not negative.
    method : str, default="auto"
        "auto" is the portfolio that a user should get; the others are there to compare.
    method_options : dict, default=None
        Keywords of the method itself.
    init : list of supports, one per component, or Result, default=None
        Features, by name or number, with which the search begins; a list of them for one component.
        A Result, or a fitted estimator, gives its own supports, but for excluded features.
        An answer of disjoint components (sum of variances) is never worse than these supports are.
    rank : int, default=None
        Rank of the sketch, for methods that work on one.
    center : bool, default=True
        Subtract the mean. Sparse data is centred implicitly and stays sparse.
    scale : bool, default=False
        Divide by the standard deviation, or without centring by the root of the mean square;
        constant features are left alone.
    certify : {"fast", "full", False}, default="fast"
        How hard to prove: a deterministic budget of a few seconds; until `tol`, a limit, or the
        end of what proofs can improve; or the cheap bounds only.
    tol : float, default=1e-6
        The relative gap that counts as optimal.
    max_nodes : int, default=None
        Limit on the nodes of the branch and bound.
    time_limit : float, default=None
        Seconds; the best answer so far is kept, with its valid bound.
    n_jobs : int, default=None
        Threads, or inside `joblib.parallel_config("dask")` the workers of a cluster. Results do not
        depend on it.
    random_state : int, Generator, RandomState or None, default=0
        The same seed gives the same answer.
    verbose : int, default=0
        1 prints a line per improvement to stderr.
    callback : callable, default=None
        Called with a Progress; return True to stop with the best answer so far. From version 1.9 on
        the callbacks of scikit-learn work as well: `set_callbacks(ProgressBar())`.
    memory_limit : int or str, default=1 GiB
        Bytes, or a size as "500MB" and "2GiB". Data that would take more in memory are read in
        passes; the features that vary or covary most are searched, and the bound counts all.
    include : list of names, patterns or numbers, or mask; or one per component, default=None
        Features that a component must use. They take their places among its nonzeros whatever their
        best loadings are, and the components are then in the order of these lists.
    exclude : list of names, patterns or numbers, or mask, default=None
        Features that no component may use; a pattern is as `gene*`.
    missing : {"error", "rows", "mean", "median", "pairwise"}, default="error"
        What to do about entries that are missing (NaN): refuse them, leave out their rows, fill
        them with the mean or median of their column, or use the covariance of each pair of
        features over the rows that have both, moved to the nearest positive semidefinite matrix.
        `transform` fills as `fit` did, and after "rows" and "pairwise" predicts what is missing
        linearly from the used features that are there.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit vectors, ordered by variance, the largest loading of each positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each component; with `objective="adjusted"`, the default for free supports, what
        it explains beyond those before it. Covariances divide by n.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a fraction of the total variance.
    largest_correlation_ : float
        The largest correlation between the scores of two components.
    adjusted_variance_ : float
        What all components explain when each counts only beyond those before it, in the best order
        (in their own order, for more than eight).
    certificate_ : Certificate
        Value, proven upper bound, gap, and how it was proved.
    result_ : Result
        All of it, to be saved and rechecked with `sparcipal.verify`.
    mean_ : ndarray of shape (n_features,)
        What is subtracted; zero with center=False.
    scale_ : ndarray of shape (n_features,)
        What is divided by; one with scale=False.
    sums_ : Sums
        After `partial_fit`: sums over all rows that it has seen.
    n_iter_ : int
        Iterations of the search.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the data had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 6))
    >>> X[:, 1] += 2 * X[:, 0]
    >>> pca = SparsePCA(n_components=2, n_nonzero_coefs=2).fit(X)
    >>> [np.flatnonzero(c).tolist() for c in pca.components_]
    [[0, 1], [2, 3]]
    >>> pca.certificate_.status.value
    'optimal'
    """

    @known_keywords
    def __init__(
        self,
        n_components: int = 1,
        n_nonzero_coefs: int | Iterable[int] | Mapping[str, int] | None = None,
        *,
        supports: str = "disjoint",
        objective: str | None = None,
        uncorrelated: bool = False,
        nonnegative: bool = False,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        init: Any = None,
        rank: int | None = None,
        center: bool = True,
        scale: bool = False,
        certify: str | bool = "fast",
        tol: float = 1e-6,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Callable[[Progress], object] | None = None,
        memory_limit: float | str = MEMORY_LIMIT,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.supports = supports
        self.objective = objective
        self.uncorrelated = uncorrelated
        self.nonnegative = nonnegative
        self.method = method
        self.method_options = method_options
        self.init = init
        self.rank = rank
        self.center = center
        self.scale = scale
        self.certify = certify
        self.tol = tol
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.memory_limit = memory_limit
        self.include = include
        self.exclude = exclude
        self.missing = missing

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparsePCA:
        """Find the components of X.

        Parameters
        ----------
        X : array, sparse matrix, frame, memory map or Table of shape (n_samples, n_features)
            Or a function that returns an iterator over blocks of rows, or anything of dask. What
            takes more than `memory_limit` is read in passes.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Not negative. A weight that is positive is at least 1e-100 of the largest.

        Returns
        -------
        self : SparsePCA
        """
        from .fit import fitted  # search and proofs are loaded by the first fit, not by an import

        task = self._begin_task(X)
        with Complaints() as check:
            settings = self._settings(task, check)
            monitor = settings.monitor()
            with monitor.interruptible(), one_blas_thread:
                door = settings.door(monitor, check)
                given = resolved(X, sample_weight=sample_weight, door=door)
                names = self._see_columns(X, given)
                result = fitted(replace(given, feature_names=names), settings, monitor, aloud=True)
        self._keep(result)
        if hasattr(self, "sums_"):  # of rows that partial_fit has seen before
            del self.sums_
        self._end_task(task, X)
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparsePCA:
        """Find the components of all rows that `partial_fit` has seen, these included.

        Sums over the rows are kept, not the rows: the products of all features if they fit
        `memory_limit`, otherwise of those that vary most in the first rows, and the bound counts
        all. The search begins with the components of the call before. `update` says what has
        changed, and takes rows away.

        Parameters
        ----------
        X : what `fit` takes
            New rows, with the same columns each time; the first ones are at least two.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Of these rows; in every call, or in none.

        Returns
        -------
        self : SparsePCA
        """
        from .fit import fitted

        known: Sums | None = getattr(self, "sums_", None)
        if known is None and hasattr(self, "result_"):
            tell(
                (
                    "fit keeps no sums over its rows: partial_fit begins with these; to add to "
                    "those of the fit, pass them to sparcipal.update(model, new_rows, X=...)",
                )
            )
        task = self._begin_task(X)
        with Complaints() as check:
            settings = self._settings(task, check)
            if settings.missing != "error":
                check.add(
                    ValueError(
                        f"partial_fit with missing={settings.missing!r}: sums know nothing of "
                        "entries that are missing; leave out or fill them in each block of rows"
                    )
                )
            rows = check(self._rows_of, X, known is not None)
            if rows is not None and sample_weight is not None:
                check(with_weights, rows, sample_weight)
            if rows is not None:
                names = rows.feature_names if known is None else self.result_.feature_names
                check(settings.question, Columns(rows.n_features, names))
        monitor = settings.monitor()
        with monitor.interruptible(), one_blas_thread:
            if known is None:
                tell(rows.notes)
                names = self._see_columns(X, Input(rows, rows.feature_names))
                with other_ways_out(OF_SUMS):
                    sums = summed(rows, settings.memory_limit, monitor)
            else:
                settings = settings.beginning_with(self.result_)
                with other_ways_out(OF_SUMS):
                    sums = known.changed(rows, None, monitor)
            result = fitted(Input(sums, names), settings, monitor, aloud=True)
        self._keep(result)
        self.sums_: Sums = sums
        self._end_task(task, X)
        return self

    def _rows_of(self, X: Any, more: bool) -> Rows:
        """Return rows of X; `more` of them have the columns of the first."""
        with other_ways_out(OF_SUMS):
            if not more:
                return as_rows(X, memory_limit=memory_bytes(self.memory_limit))
            if is_frame(X) and not self._selects:
                validate_data(self, X, reset=False, skip_check_array=True)
            rows = as_rows(self._as_fitted(X))
        self._check_columns(rows.n_features, rows.feature_names)
        return rows

    def _check_values(self) -> None:
        """Refuse parameters that no data can make right."""
        with Complaints() as check:
            self._settings(None, check)

    def _settings(self, task: Any, check: Complaints) -> Settings:
        parameters = {name: getattr(self, name) for name in self._get_param_names()}
        used_up = [name for name in parameters if isinstance(parameters[name], Iterator)]
        if used_up:
            check.add(
                TypeError(
                    f"{' and '.join(used_up)}: an iterator yields its entries to the first fit "
                    "only; pass a list"
                )
            )
            parameters = {name: parameters[name] for name in parameters if name not in used_up}
        return Settings.noted(check, **{**parameters, "callback": self._reporting_to(task)})

    def _see_columns(self, X: Any, given: Input) -> tuple[str, ...] | None:
        """Set `n_features_in_` and `feature_names_in_`, the names that go into the result.

        Of a frame scikit-learn takes the names, so that its later checks agree with them.
        """
        names = given.feature_names
        scanned = hasattr(X, "collect_batches") or hasattr(X, "scanner")  # polars, pyarrow
        frame = is_frame(X) and not (is_lazy(X) or scanned)
        lazy_frame = is_lazy(X) and hasattr(X, "map_partitions") and hasattr(X, "columns")
        # Where columns were set aside or renamed, later frames are asked for the others by name.
        own = column_names(X) if frame or lazy_frame or scanned else names
        self._selects = names is not None and names != own
        if frame and not self._selects:
            validate_data(self, X, skip_check_array=True)
        else:
            validate_data(self, np.empty((0, given.n_features)), skip_check_array=True)
            if names is not None:
                self.feature_names_in_ = np.asarray(names, dtype=object)
        return names

    def _begin_task(self, X: Any) -> Any:
        """Return the task that scikit-learn's callbacks hear of; None before scikit-learn 1.9."""
        if not hasattr(self, "_init_callback_context"):
            return None
        # The number of steps of a proof is not known beforehand.
        task = self._init_callback_context(max_subtasks=None)
        return task.call_on_fit_task_begin(estimator=self, X=X)

    def _end_task(self, task: Any, X: Any) -> None:
        if task is not None:
            fitted_now = {name: value for name, value in vars(self).items() if name.endswith("_")}
            task.call_on_fit_task_end(estimator=self, X=X, reconstruction_attributes=fitted_now)

    def _reporting_to(self, task: Any) -> Callable[[Progress], object] | None:
        """Return the user's own callback and, if some are set, scikit-learn's: every step is a
        subtask."""
        own = self.callback
        if task is None or not hasattr(self, "_skl_callbacks"):
            return own
        if own is not None and not callable(own):
            return own  # refused with the other parameters

        def report(progress: Progress) -> bool:
            stop = own is not None and bool(own(progress))
            step = task.subcontext(task_name=progress.stage)
            step.call_on_fit_task_begin(estimator=self)
            return step.call_on_fit_task_end(estimator=self) or stop

        return report

    def _keep(self, result: Result) -> None:
        self.result_: Result = result
        self.certificate_: Certificate = result.certificate
        self.components_ = result.components
        self.explained_variance_ = result.variances
        self.largest_correlation_ = result.largest_correlation
        self.adjusted_variance_ = result.adjusted_variance
        self.explained_variance_ratio_ = result.variances / result.total_variance
        self.mean_: Any = result.mean
        self.scale_: Any = result.scale
        self.n_iter_ = max(int(result.n_iter), 1)
        if result.note:
            warnings.warn(result.note, ConvergenceWarning, stacklevel=4)

    def _lazy_scores(self, X: Any) -> Any:
        from .data.dask import lazy_scores

        check_is_fitted(self)
        X = fitted_columns(X, tuple(self.feature_names_in_) if self._selects else None)
        given = getattr(X, "columns", None) if hasattr(X, "map_partitions") else None
        if given is not None and not callable(given):
            self._check_columns(len(given), tuple(str(name) for name in given))
        wanted = getattr(self, "_sklearn_output_config", {}).get(
            "transform", get_config()["transform_output"]
        )
        if wanted not in ("default", "pandas"):
            raise ValueError(
                f"set_output(transform={wanted!r}) does not work with lazy data; set it to "
                "'pandas' for a dask frame or to 'default' for a dask array, or compute X first"
            )
        names = None if wanted == "default" else self.get_feature_names_out()
        return lazy_scores(X, Scorer(self.result_), names)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Go back from scores to features, by the pseudo-inverse when components are not
        orthogonal."""
        check_is_fitted(self)
        if is_lazy(X):
            raise ValueError(
                "X is lazy, but inverse_transform makes dense rows of all features; compute the "
                "scores you need first: inverse_transform(X.compute())"
            )
        given = check_array(X, dtype=np.float64, input_name="X")
        k = self.components_.shape[0]
        if given.shape[1] != k:
            raise ValueError(
                f"X has shape {given.shape}, but inverse_transform needs one column per "
                f"component: {k}"
            )
        gram = self.components_ @ self.components_.T
        return (given @ np.linalg.pinv(gram) @ self.components_) * self.scale_ + self.mean_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of the variance of these rows that the components explain together.

        Every feature is predicted from the scores by its regression in the fit. With Z the rows,
        centred and scaled as in `transform`, T their scores and B the coefficients of the fit, it
        is ``1 - |Z - TB|^2 / |Z|^2``. What two components have in common counts once. Features
        that a table read in passes did not keep are predicted by their means. `GridSearchCV` and
        `cross_val_score` use it.

        Entries may be missing where the fit had a rule for them, `missing=`. After "mean" and
        "median" a gap is filled as in the fit. After "rows" and "pairwise" scores are those of
        `transform`, which predicts what is missing, and the sums run over the entries that are
        there; rows in which no component has an entry are left out, with a warning.

        A component explains the features that it consists of, so that a further one may raise the
        score even of noise, by about 1 / n_features: `sparcipal.choose` measures that on shuffled
        columns and recommends a number of components.

        Parameters
        ----------
        X : what `fit` takes
        y : ignored
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        share : float
            At most 1; negative where the means of the fit predict these rows better than the scores
            do; nan, with a warning, when the rows are these means.
        """
        from .data.explained import explained

        check_is_fitted(self)
        gaps = Scorer(self.result_).takes_gaps
        X = self._as_fitted(X)
        ours = isinstance(X, Table) or in_blocks(X) or is_lazy(X)
        if not ours:
            validate_data(self, X, reset=False, skip_check_array=True)
        if is_frame(X) and not is_lazy(X):  # a column without an entry is a feature here
            X = features_of(self.result_, X, gaps=gaps)
        door = Door(memory_bytes(self.memory_limit), Monitor(), gaps=gaps)
        with other_ways_out("fill them, or pass X.compute() if that fits" if gaps else _TO_SCORE):
            given = resolved(X, sample_weight=sample_weight, door=door)
            if ours:
                self._check_columns(given.n_features, given.feature_names)
            assert isinstance(given.source, Table | Rows)
            with one_blas_thread:
                sums = explained(self.result_, given.source, given.sample_weight)
        if sums.without_score:
            tell(
                (
                    f"score leaves out {sums.without_score} row(s) without an entry in any column "
                    "that components use",
                )
            )
        if np.isnan(sums.score):
            why = (
                f"the {sums.n_samples} row(s) of X are the means of the fit, so that there is "
                "nothing to explain; pass rows that vary"
            )
            why = why if sums.n_samples else "no row is left; pass rows with entries"
            warnings.warn(f"score is nan: {why}", UndefinedMetricWarning, stacklevel=2)
        return sums.score

    def save(self, path: str | os.PathLike[str], *, proof: bool = True) -> None:
        """Write what was found to `path`, and its proof to `<path>.proof`, for `load` and for
        `sparcipal verify`; after `partial_fit` the sums to `<path>.sums`, to go on with.

        The parameters are kept as well, but for `callback`, which is no data: a warning says so.
        """
        check_is_fitted(self)
        if self.callback is not None:
            tell(("callback is not saved; set it again after load: set_params(callback=...)",))
        own = {"estimator": {name: _as_data(getattr(self, name)) for name in _BESIDE}}
        replace(self.result_, info={**self.result_.info, **own}).save(path, proof=proof)
        beside = sums_path(Path(path))
        if hasattr(self, "sums_"):
            self.sums_.save(beside)
        else:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | Result, *, proof: bool = True) -> SparsePCA:
        """Return a fitted estimator of a result that `save` or the command line has written, or of
        a Result; it scores new samples as the one that was saved did.

        It has the parameters of the fit, so that a clone or a further fit asks the same question.
        `include`, `exclude` and `init` name features where they have names, and n_nonzero_coefs
        has one number per component. What a Result does not hold (`init`, `memory_limit`, `n_jobs`
        and `verbose`) comes back where the estimator itself was saved.
        """
        result = path if isinstance(path, Result) else Result.load(path, proof=proof)
        beside = None if isinstance(path, Result) else sums_path(Path(path))
        if result.mean is None or result.scale is None:
            raise ValueError(
                "the result came from a covariance matrix: an estimator of it could score no "
                "samples; use Result.load"
            )
        model = cls(**_parameters(result))
        model._selects = result.feature_names is not None
        validate_data(model, np.empty((0, result.n_features)), skip_check_array=True)
        if result.feature_names is not None:
            model.feature_names_in_ = np.asarray(result.feature_names, dtype=object)
        model._keep(replace(result, note=""))
        model.result_ = result
        if beside is not None and beside.exists():
            model.sums_ = Sums.load(beside)
        return model

    def table(self) -> Any:
        """Component, features with their weights, variance: a table that prints."""
        check_is_fitted(self)
        return self.result_.table()

    def _repr_html_(self) -> str:
        """Return the parameters; once fitted, the components and what is proved of them."""
        parameters: str = estimator_html_repr(self)
        return parameters + self.result_._repr_html_() if hasattr(self, "result_") else parameters

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.transformer_tags.preserves_dtype = []
        return tags


# Parameters that a saved result holds.
_SAVED = (
    "n_components", "n_nonzero_coefs", "supports", "objective", "uncorrelated", "nonnegative",
    "method", "method_options", "rank", "center", "scale", "certify", "tol", "max_nodes",
    "time_limit", "random_state", "missing",
)  # fmt: skip
# Parameters that it holds only if the estimator itself was saved. `missing` is among them: of a
# table without gaps the settings do not tell the rule.
_BESIDE = ("init", "n_jobs", "verbose", "memory_limit", "missing")
_CHECKS: dict[str, Any] = {
    "accept_sparse": ("csr", "csc"),
    "accept_large_sparse": True,
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # the Table says it, with a remedy
    "ensure_min_samples": 1,
}


def _parameters(result: Result) -> dict[str, Any]:
    """Return the parameters that ask the question of a result once more."""
    told, names = result.settings, result.feature_names
    own, gaps = result.info.get("estimator", {}), result.info.get("missing", {})
    asked = {name: own[name] for name in _BESIDE if name in own}
    if "rule" in gaps:
        asked["missing"] = gaps["rule"]
    asked |= {name: told[name] for name in _SAVED if name in told}
    if told.get("n_nonzero_total") is not None:
        asked["n_nonzero_coefs"] = {"total": told["n_nonzero_total"]}
    if told.get("include"):
        asked["include"] = [named(anchors, names) for anchors in told["include"]]
    if told.get("exclude"):
        asked["exclude"] = named(told["exclude"], names)
    return asked


def _as_data(value: Any) -> Any:
    """Return a parameter as a document keeps it; a result or an estimator as its supports."""
    answer = answer_of(value)
    if answer is not None:
        return [named(support.tolist(), answer.feature_names) for support in answer.supports]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [_as_data(entry) for entry in value]
