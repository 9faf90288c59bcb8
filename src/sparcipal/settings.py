"""The public keywords of a fit, checked before any work starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from .data.missing import RULES
from .data.passes import MEMORY_LIMIT, memory_bytes
from .data.searched import Data
from .problem.constraints import Columns, Constraints, constraints_of, excluded
from .problem.monitor import Monitor, Progress, reporter
from .problem.parameters import (
    Complaints,
    choice,
    features,
    flag,
    integer,
    jobs,
    like_default,
    number,
    refuse_unknown,
    seconds,
    seed,
)
from .problem.problem import Options
from .problem.result import Result, answer_of
from .search.method import Method
from .search.registry import anchoring_methods, get_method, sharing_methods

CERTIFY = ("fast", "full", False)
SUPPORTS = ("disjoint", "free", "orthogonal", "common")
OBJECTIVES = ("sum", "adjusted")
DEFAULT_NONZERO = 10


@dataclass(frozen=True)
class Asked:
    """The settings that depend on the features, as numbers."""

    sizes: tuple[int, ...]  # nonzeros of each component
    total: int | None  # nonzeros of all, if these are limited together
    constraints: Constraints
    starts: tuple[tuple[np.ndarray, ...], ...]


@dataclass(frozen=True)
class Settings:
    """What was asked for, under the names of the public keywords; `of` checks it.

    What depends on the features (sizes, `include`, `exclude`, `init`) is checked by `question`,
    once these are known.
    """

    n_components: Any = 1
    n_nonzero_coefs: Any = None
    supports: str = "disjoint"
    objective: str | None = None
    uncorrelated: bool = False
    nonnegative: bool = False
    method: str = "auto"
    method_options: Any = None
    init: Any = None
    rank: int | None = None
    center: bool = True
    scale: bool = False
    certify: str | bool = "fast"
    tol: float = 1e-6
    max_nodes: int | None = None
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0
    callback: Callable[[Progress], object] | None = None
    memory_limit: int = MEMORY_LIMIT
    include: Any = None
    exclude: Any = None
    missing: str = "error"

    @staticmethod
    def of(**keywords: Any) -> Settings:
        """The checked settings of these keywords; the others have their defaults."""
        refuse_unknown("sparse_pca", keywords, [field.name for field in fields(Settings)])
        asked = Settings(**keywords)
        with Complaints() as check:
            check(choice, "supports", asked.supports, SUPPORTS)
            if asked.objective is not None:
                check(choice, "objective", asked.objective, OBJECTIVES)
            check(choice, "certify", asked.certify, CERTIFY)
            check(choice, "missing", asked.missing, RULES)
            asked = replace(
                asked,
                nonnegative=check(flag, "nonnegative", asked.nonnegative),
                uncorrelated=check(flag, "uncorrelated", asked.uncorrelated),
            )
            return replace(
                asked,
                n_components=check(_count, asked.n_components),
                n_nonzero_coefs=check(_sizes, asked.n_nonzero_coefs),
                objective=check(_objective, asked),
                method_options=check(_method_options, asked.method, asked.method_options),
                init=_kept(asked.init),
                rank=None if asked.rank is None else check(integer, "rank", asked.rank, 1),
                random_state=check(seed, asked.random_state),
                n_jobs=check(jobs, asked.n_jobs),
                tol=check(number, "tol", asked.tol, 0.0, 1.0),
                max_nodes=None
                if asked.max_nodes is None
                else check(integer, "max_nodes", asked.max_nodes, 0),
                time_limit=check(seconds, "time_limit", asked.time_limit),
                memory_limit=check(memory_bytes, asked.memory_limit),
                callback=check(reporter, asked.callback, asked.verbose),
                center=check(flag, "center", asked.center),
                scale=check(flag, "scale", asked.scale),
                include=_kept(asked.include),
                exclude=_kept(asked.exclude),
            )

    @property
    def disjoint(self) -> bool:
        return self.supports == "disjoint"

    @property
    def search(self) -> Method:
        return get_method(self.method)

    def monitor(self) -> Monitor:
        """The clock of a call starts here."""
        return Monitor(self.callback, self.time_limit)

    def options(self, monitor: Monitor) -> Options:
        """What every search method takes."""
        return Options(
            rank=self.rank,
            seed=self.random_state,
            n_jobs=self.n_jobs or 1,
            tol=self.tol,
            max_nodes=self.max_nodes,
            monitor=monitor,
        )

    def question(self, columns: Columns) -> Asked:
        """Check what depends on the features; one error names all that is wrong with it."""
        with Complaints() as check:
            budget = check(self.budget, columns.count, self.available(columns))
            # names are checked even where the sizes are wrong
            sizes, total = budget or ((columns.count,) * self.n_components, None)
            constraints = check(self.constraints, columns, sizes, total)
            starts = check(self.starts, sizes, columns)
            return Asked(sizes, total, constraints, starts)

    def available(self, columns: Columns) -> int:
        """The number of features that are not excluded."""
        left = columns.count - len(set(excluded(self.exclude, columns)[0]))
        if not left:
            raise ValueError(f"exclude leaves none of {columns.count} features; exclude fewer")
        return left

    def constraints(self, columns: Columns, sizes: Sequence[int], total: int | None) -> Constraints:
        """What `include` and `exclude` say, or an error that names all that is wrong with them."""
        found = constraints_of(self.include, self.exclude, columns, sizes, self.disjoint)
        if not found.include:
            return found
        if not self.search.anchors:
            raise ValueError(
                f"include needs method={' or '.join(map(repr, anchoring_methods()))}, got "
                f"{self.method!r}; this method cannot be made to use a feature"
            )
        plain = self.disjoint and self.objective == "sum"
        if total is not None or (len(sizes) > 1 and not plain):
            asked = f"supports={self.supports!r}, objective={self.objective!r}"
            asked = asked if total is None else f"a total of {total}"
            raise ValueError(
                f"include with several components needs supports='disjoint', objective='sum' and "
                f"n_nonzero_coefs for each component, got {asked}"
            )
        if len(sizes) > 1 and not self.search.anchors_several:
            raise ValueError(
                f"include with n_components={len(sizes)} needs method='auto', got {self.method!r}"
            )
        return found

    def record(
        self, sizes: Sequence[int], total: int | None, data: Data, asked: Constraints
    ) -> dict[str, Any]:
        """What a Result keeps: everything that its answer depends on."""
        kept = {
            "n_components": len(sizes),
            "n_nonzero_coefs": list(sizes),
            "supports": self.supports,
            "objective": self.objective,
            "uncorrelated": self.uncorrelated,
            "nonnegative": self.nonnegative,
            "method": self.method,
            "method_options": self.method_options,
            "rank": self.rank,
            "center": data.center,
            "scale": data.scaled,
            "certify": self.certify,
            "tol": self.tol,
            "max_nodes": self.max_nodes,
            "time_limit": self.time_limit,
            "random_state": self.random_state,
            "sample_weight": data.weighted,
            **asked.record(),
        }
        if data.gaps is not None and data.gaps.entries:
            kept["missing"] = data.gaps.rule
        return kept if total is None else {**kept, "n_nonzero_total": total}

    def budget(
        self, n_features: int, available: int | None = None
    ) -> tuple[tuple[int, ...], int | None]:
        """Cardinalities and, for `{"total": T}`, the nonzeros that all components have together.

        `available` features are not excluded.
        """
        if available is None or available == n_features:
            return self._budget(n_features)
        try:
            return self._budget(available)
        except ValueError as error:
            left = f"exclude leaves {available} of {n_features} features"
            raise ValueError(f"{left}: {error}") from None

    def _budget(self, n_features: int) -> tuple[tuple[int, ...], int | None]:
        n_nonzero_coefs, supports, method = self.n_nonzero_coefs, self.supports, self.method
        if not isinstance(n_nonzero_coefs, Mapping):
            return self._cardinalities(n_features), None
        k = self.n_components
        if list(n_nonzero_coefs) != ["total"]:
            raise ValueError(
                f"n_nonzero_coefs={dict(n_nonzero_coefs)!r} must be {{'total': ...}}, the nonzeros "
                "of all components together; otherwise pass an integer, or one per component"
            )
        total = integer(
            "n_nonzero_coefs['total']", n_nonzero_coefs["total"], k, "one nonzero per component"
        )
        if total > n_features:
            raise ValueError(
                f"n_nonzero_coefs={{'total': {total}}} must be at most n_features={n_features}"
            )
        if supports != "disjoint":
            raise ValueError(
                f"n_nonzero_coefs={{'total': {total}}} needs supports='disjoint', got "
                f"{supports!r}; with overlapping supports pass one integer per component"
            )
        if self.objective != "sum" and k > 1:
            raise ValueError(
                f"n_nonzero_coefs={{'total': {total}}} needs objective='sum', got "
                f"{self.objective!r}; for adjusted variances pass one integer per component"
            )
        if not self.search.shares_totals:
            sharing = " or ".join(map(repr, sharing_methods()))
            raise ValueError(
                f"n_nonzero_coefs={{'total': {total}}} needs method={sharing}, "
                f"got {method!r}; this method takes one integer per component"
            )
        if k == 1:
            return (total,), None
        return (total - k + 1,) * k, total

    def remark(self, sizes: Sequence[int]) -> str:
        """Say that there are fewer components than were asked for; "" where there are not."""
        if len(sizes) == self.n_components:
            return ""
        return (
            f"{len(sizes)} of n_components={self.n_components} components: a common set of "
            f"{sizes[0]} features has no more directions"
        )

    def starts(self, sizes: Sequence[int], columns: Columns) -> tuple[tuple[np.ndarray, ...], ...]:
        """`init` as supports that the search begins with; none of them if it is not given."""
        init = self.init
        if init is None:
            return ()
        if not self.search.takes_starts:
            raise ValueError(f"init needs method='auto', got {self.method!r}; leave init out")
        if isinstance(self.n_nonzero_coefs, Mapping):
            raise ValueError(
                "init needs one number of nonzeros per component, but n_nonzero_coefs is a total; "
                "pass an integer, or one per component"
            )
        k = len(sizes)
        out = set(excluded(self.exclude, columns)[0])
        init = _supports_of(init, columns, out)
        if isinstance(init, str) or not isinstance(init, Sequence | np.ndarray):
            raise TypeError(
                "init must be a list of supports, one per component, a result or a fitted "
                f"estimator, got {init!r}"
            )
        flat = k == 1 and all(isinstance(entry, str | Integral) for entry in init)
        lists = [init] if flat else list(init)
        if len(lists) != k:
            raise ValueError(
                f"init has {len(lists)} supports for n_components={k}; pass one each, as some of "
                "result.supports, or ask for as many components"
            )
        supports = tuple(
            features(f"init[{j}]", support, columns.count, columns.names)
            for j, support in enumerate(lists)
        )
        both = sorted(out.intersection(np.concatenate(supports).tolist()))
        if both:
            raise ValueError(
                f"{', '.join(map(columns.called, both))} in init and in exclude; leave out one"
            )
        for j, (support, s) in enumerate(zip(supports, sizes)):
            if support.size > s:
                raise ValueError(
                    f"init[{j}] has {support.size} features, but component {j} may use {s}; name "
                    "fewer, or raise n_nonzero_coefs"
                )
        if self.disjoint and np.unique(np.concatenate(supports)).size < sum(map(len, supports)):
            raise ValueError(
                "init uses a feature in two components, but supports='disjoint'; name each once"
            )
        return (supports,)

    def beginning_with(self, before: Result) -> Settings:
        """The same question, whose search begins with an earlier answer where that fits it."""
        told = before.settings.get("supports")
        if self.init is not None or not self.search.takes_starts or told != self.supports:
            return self
        if isinstance(self.n_nonzero_coefs, Mapping):
            return self
        sizes = self._cardinalities(before.n_features)
        fits = len(sizes) == len(before.supports) and all(
            support.size <= s for support, s in zip(before.supports, sizes)
        )
        return replace(self, init=before) if fits else self

    def _cardinalities(self, n_features: int) -> tuple[int, ...]:
        """One cardinality per component, or an error that says what these features allow."""
        n_nonzero_coefs, supports = self.n_nonzero_coefs, self.supports
        k = self.n_components
        if supports == "disjoint" and k > n_features:
            raise ValueError(
                f"n_components={k} components cannot have disjoint supports among "
                f"n_features={n_features} features; ask for at most {n_features}, or pass "
                "supports='free'"
            )
        if k > n_features:
            raise ValueError(
                f"n_components={k} must be at most n_features={n_features}: there are no more "
                "directions"
            )
        if n_nonzero_coefs is None:
            share = n_features // k if supports == "disjoint" else n_features
            least = k if supports == "common" or self.uncorrelated else 1
            n_nonzero_coefs = max(min(DEFAULT_NONZERO, share), least)
        each = isinstance(n_nonzero_coefs, list)
        checked = tuple(n_nonzero_coefs if each else [n_nonzero_coefs] * k)
        if len(checked) != k:
            raise ValueError(
                f"n_nonzero_coefs={n_nonzero_coefs!r} has {len(checked)} entries for "
                f"n_components={k}; pass one integer for all, or one per component"
            )
        if max(checked) > n_features:
            raise ValueError(
                f"n_nonzero_coefs={max(checked)} must be at most n_features={n_features}; for "
                "dense loadings use ordinary PCA"
            )
        if supports == "disjoint" and sum(checked) > n_features:
            raise ValueError(
                f"{k} disjoint components of n_nonzero_coefs={n_nonzero_coefs} need {sum(checked)} "
                f"features, but there are {n_features}; ask for at most {n_features // k} nonzeros "
                "each, for fewer components, or pass supports='free'"
            )
        self._check_sizes(checked)
        # a set of s features has no more than s principal components
        return checked[: checked[0]] if supports == "common" else checked

    def _check_sizes(self, sizes: tuple[int, ...]) -> None:
        """Refuse sizes with which components of this kind need not exist."""
        k = len(sizes)
        if self.supports == "common" and len(set(sizes)) > 1:
            raise ValueError(
                f"n_nonzero_coefs={list(sizes)} with supports='common': all components lie in one "
                "set of features; pass one integer, the size of that set"
            )
        if self.uncorrelated and any(s < j for j, s in enumerate(sorted(sizes), 1)):
            raise ValueError(
                f"uncorrelated=True with n_nonzero_coefs={list(sizes)}: one of j components must "
                "have j nonzeros to be uncorrelated with the others; ask for at least "
                f"{k} nonzeros each, or pass objective='adjusted'"
            )


def _supports_of(init: Any, columns: Columns, out: Collection[int]) -> Any:
    """Return the supports of a result or a fitted estimator but for the features `out`, by name
    where there are names."""
    answer = answer_of(init)
    if answer is None:
        return init
    if answer.feature_names is None or columns.names is None:
        return [[j for j in support.tolist() if j not in out] for support in answer.supports]
    left_out = {columns.names[j] for j in out}
    named = [[answer.feature_names[j] for j in support] for support in answer.supports]
    return [[name for name in support if name not in left_out] for support in named]


def _kept(given: Any) -> Any:
    """Return what an iterator yields as a list, which can be read more than once."""
    return list(given) if isinstance(given, Iterator) else given


def _sizes(given: Any) -> Any:
    """`n_nonzero_coefs` as None, an integer, a list of integers, or a dict for a total."""
    if given is None or isinstance(given, Mapping):
        return given
    if isinstance(given, Integral):
        return integer("n_nonzero_coefs", given, 1)
    listed = isinstance(given, Sequence | Iterator) or (
        isinstance(given, np.ndarray) and given.ndim == 1
    )
    if isinstance(given, str | bytes) or not listed:
        raise TypeError(
            f"n_nonzero_coefs must be an integer or one integer per component, got {given!r}"
        )
    return [integer("n_nonzero_coefs", s, 1) for s in given]


def _objective(asked: Settings) -> str:
    """The objective of these supports, or an error for what contradicts itself."""
    supports, objective = asked.supports, asked.objective
    if supports == "free" and objective == "sum" and not asked.uncorrelated:
        raise ValueError(
            "supports='free' with objective='sum' would return the best component n_components "
            "times; pass objective='adjusted', or supports='orthogonal'"
        )
    if supports in ("orthogonal", "common") and objective == "adjusted":
        remedy = {
            "orthogonal": "leave objective out, or pass supports='free'",
            "common": "leave objective out: components in a common set are uncorrelated, so that "
            "both objectives are the same",
        }[supports]
        raise ValueError(f"supports={supports!r} goes with objective='sum'; {remedy}")
    if asked.nonnegative and supports == "orthogonal":
        raise ValueError(
            "supports='orthogonal' with nonnegative=True: nonnegative components that are "
            "orthogonal share no feature; pass supports='disjoint'"
        )
    if asked.nonnegative and supports == "common":
        raise ValueError(
            "supports='common' with nonnegative=True: the components of a common set are its "
            "principal components, which have both signs; pass supports='free' or 'disjoint'"
        )
    if asked.uncorrelated and asked.nonnegative:
        raise ValueError(
            "uncorrelated=True with nonnegative=True: nonnegative components that are uncorrelated "
            "need not exist; pass objective='adjusted'"
        )
    if asked.uncorrelated and supports == "orthogonal":
        raise ValueError(
            "uncorrelated=True with supports='orthogonal': sparse components that are both need "
            "not exist; pass supports='free', or leave uncorrelated out"
        )
    if supports == "free" or (asked.uncorrelated and supports == "disjoint"):
        return "adjusted"
    return objective or "sum"


def _count(n_components: Any) -> int:
    """The number of components; a share of the variance is answered in words."""
    if isinstance(n_components, float) and 0 < n_components < 1:
        raise TypeError(
            f"n_components must be an integer, got {n_components!r}; a share of the variance does "
            "not say how many sparse components to take: ask for some, and see "
            "explained_variance_ratio_"
        )
    return integer("n_components", n_components, 1)


def _method_options(name: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """A method's own keywords, checked against what it takes; the name is checked, too."""
    if not isinstance(name, str):
        raise TypeError(f"method must be a string, got {name!r}")
    method = get_method(name)
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"method_options must be a dict, got {options!r}")
    parameters = inspect.signature(method.run).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    takes = list(defaults)
    for key in options:
        if key not in takes:
            known = f"it takes {', '.join(takes)}" if takes else "it takes none"
            raise ValueError(f"method_options: method={name!r} has no option {key!r}; {known}")
        least = 1 if key.startswith("max_") else 0
        like_default(f"method_options[{key!r}]", options[key], defaults[key], least)
    return dict(options)
