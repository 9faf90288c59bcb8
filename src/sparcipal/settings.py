"""The public keywords of a fit, checked before any work starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from .data.facts import Data
from .data.inputs import Door
from .data.missing import RULES
from .data.passes import BESIDE, MEMORY_LIMIT, memory_bytes
from .keywords import (
    count,
    count_of_lists,
    fine,
    kept,
    objective_of,
    of_left,
    options_of,
    sizes_of,
    too_many,
)
from .problem.constraints import (
    Columns,
    Constraints,
    asks_for_some,
    constraints_of,
    excluded,
    named,
)
from .problem.monitor import Monitor, Progress, reporter
from .problem.parameters import (
    Complaints,
    choice,
    features,
    flag,
    integer,
    jobs,
    number,
    refuse,
    refuse_unknown,
    seconds,
    seed,
)
from .problem.problem import Options
from .problem.result import Result, answer_of
from .search.method import Method
from .search.registry import METHODS, anchoring_methods, get_method, sharing_methods

CERTIFY = ("fast", "full", False)
SUPPORTS = ("disjoint", "free", "orthogonal", "common")
OBJECTIVES = ("sum", "adjusted")
DEFAULT_NONZERO = 10


@dataclass(frozen=True)
class Refused:
    """Stands for numbers of nonzeros some of which were refused, so that no more complaints are
    made of their number; `others` are those that were not refused."""

    others: tuple[int, ...]


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
        """Return the checked settings of these keywords; the others have their defaults."""
        with Complaints() as check:
            return Settings.noted(check, **keywords)

    @staticmethod
    def noted(check: Complaints, **keywords: Any) -> Settings:
        """Return the same, with complaints left to `check`.

        What is refused has a stand-in that contradicts nothing, so that all else can be held
        against a table before the complaints are told.
        """
        known = [field.name for field in fields(Settings)]
        check(refuse_unknown, "sparse_pca", keywords, known)
        asked = Settings(**{name: keywords[name] for name in keywords if name in known})
        check(choice, "supports", asked.supports, SUPPORTS)
        if asked.objective is not None:
            check(choice, "objective", asked.objective, OBJECTIVES)
        check(choice, "certify", asked.certify, CERTIFY)
        asked = replace(
            asked,
            nonnegative=check(flag, "nonnegative", asked.nonnegative) or False,
            uncorrelated=check(flag, "uncorrelated", asked.uncorrelated) or False,
        )
        options = check(options_of, asked.method, asked.method_options)
        sizes = kept(asked.n_nonzero_coefs)
        found = check(sizes_of, sizes)
        return replace(
            asked,
            n_components=check(count, asked.n_components)
            or count_of_lists(sizes, asked.include, asked.init),
            n_nonzero_coefs=Refused(fine(sizes)) if found is None and sizes is not None else found,
            objective=check(
                objective_of, asked.supports, asked.objective, asked.nonnegative, asked.uncorrelated
            )
            or asked.objective
            or "sum",
            method="auto" if options is None and asked.method not in METHODS else asked.method,
            method_options=options,
            init=kept(asked.init),
            rank=None if asked.rank is None else check(integer, "rank", asked.rank, 1),
            random_state=check(seed, asked.random_state),
            n_jobs=check(jobs, asked.n_jobs),
            tol=check(number, "tol", asked.tol, 0.0, 1.0),
            max_nodes=None
            if asked.max_nodes is None
            else check(integer, "max_nodes", asked.max_nodes, 0),
            time_limit=check(seconds, "time_limit", asked.time_limit),
            memory_limit=check(memory_bytes, asked.memory_limit) or MEMORY_LIMIT,
            callback=check(reporter, asked.callback, asked.verbose),
            center=check(flag, "center", asked.center),
            scale=check(flag, "scale", asked.scale),
            include=kept(asked.include),
            exclude=kept(asked.exclude),
            missing=check(choice, "missing", asked.missing, RULES) or "error",
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

    def door(
        self,
        monitor: Monitor,
        check: Complaints,
        question: Callable[[Columns, int | None], object] | None = None,
    ) -> Door:
        """Return how data are let in; `question` is asked of their features, `self.question` if
        none is given."""
        asked = question or (lambda columns, n_samples: self.question(columns))
        return Door(self.memory_limit, monitor, self.missing, check, asked)

    def options(self, monitor: Monitor, room: float | None = None) -> Options:
        """Return what every search method takes; `room` is left for proofs, if that is known."""
        return Options(
            rank=self.rank,
            seed=self.random_state,
            n_jobs=self.n_jobs or 1,
            tol=self.tol,
            max_nodes=self.max_nodes,
            room=self.memory_limit * BESIDE if room is None else room,
            monitor=monitor,
        )

    def question(self, columns: Columns) -> Asked:
        """Check what depends on the features; one error names all that is wrong with it."""
        with Complaints() as check:
            budget = check(self.budget, columns.count, check(self.available, columns))
            # names are checked even where the sizes are wrong
            sizes, total = budget or ((columns.count,) * self.n_components, None)
            constraints = check(self.constraints, columns, sizes, total)
            starts = check(self.starts, sizes, columns)
            return Asked(sizes, total, constraints, starts)

    def available(self, columns: Columns) -> int:
        """Return the number of features that are not excluded."""
        left = columns.count - len(set(excluded(self.exclude, columns)[0]))
        if not left:
            raise ValueError(f"exclude leaves none of {columns.count} features; exclude fewer")
        return left

    def constraints(self, columns: Columns, sizes: Sequence[int], total: int | None) -> Constraints:
        """Return `include` and `exclude` as numbers, or tell all that is wrong with them."""
        with Complaints() as check:
            found = check(constraints_of, self.include, self.exclude, columns, sizes, self.disjoint)
            if not asks_for_some(self.include):
                return found
            if not self.search.anchors:
                check.add(
                    ValueError(
                        f"include needs method={' or '.join(map(repr, anchoring_methods()))}, got "
                        f"{self.method!r}; this method cannot be made to use a feature"
                    )
                )
            elif len(sizes) > 1 and not self.search.anchors_several:
                check.add(
                    ValueError(
                        f"include with n_components={len(sizes)} needs method='auto', got "
                        f"{self.method!r}"
                    )
                )
            plain = self.disjoint and self.objective == "sum"
            if total is not None or (len(sizes) > 1 and not plain):
                asked = f"supports={self.supports!r}, objective={self.objective!r}"
                asked = asked if total is None else f"a total of {total}"
                check.add(
                    ValueError(
                        "include with several components needs supports='disjoint', "
                        "objective='sum' and n_nonzero_coefs for each component, got " + asked
                    )
                )
            return found

    def record(
        self, sizes: Sequence[int], total: int | None, data: Data, asked: Constraints
    ) -> dict[str, Any]:
        """Return what a Result keeps: everything that its answer depends on."""
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
        """Return cardinalities and, for `{"total": T}`, the nonzeros that all components have.

        `available` features are not excluded.
        """
        if isinstance(self.n_nonzero_coefs, Refused):
            with Complaints() as check:
                check(replace(self, n_nonzero_coefs=None).budget, n_features, available)
                others = too_many(self.n_nonzero_coefs.others, available or n_features)
                check(refuse, [of_left(sentence, available, n_features) for sentence in others])
            return (n_features,) * self.n_components, None
        if available is None or available == n_features:
            return self._budget(n_features)
        try:
            return self._budget(available)
        except ValueError as error:
            raise ValueError(of_left(str(error), available, n_features)) from None

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
        given, wrong = f"n_nonzero_coefs={{'total': {total}}}", []
        if total > n_features:
            wrong.append(f"{given} must be at most n_features={n_features}")
        if supports != "disjoint":
            wrong.append(
                f"{given} needs supports='disjoint', got {supports!r}; with these supports pass "
                f"one integer{'' if supports == 'common' else ' per component'}"
            )
        elif self.objective != "sum" and k > 1:
            wrong.append(
                f"{given} needs objective='sum', got {self.objective!r}; for adjusted variances "
                "pass one integer per component"
            )
        if not self.search.shares_totals:
            sharing = " or ".join(map(repr, sharing_methods()))
            wrong.append(
                f"{given} needs method={sharing}, got {method!r}; this method takes one integer "
                "per component"
            )
        refuse(wrong)
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
        """Return `init` as supports that the search begins with; none if it is not given."""
        init = self.init
        if init is None:
            return ()
        with Complaints() as check:
            if not self.search.takes_starts:
                check.add(
                    ValueError(f"init needs method='auto', got {self.method!r}; leave init out")
                )
            if isinstance(self.n_nonzero_coefs, Mapping):
                check.add(
                    ValueError(
                        "init needs one number of nonzeros per component, but n_nonzero_coefs is a "
                        "total; pass an integer, or one per component"
                    )
                )
            return (check(self._supports, init, sizes, columns),)

    def _supports(
        self, init: Any, sizes: Sequence[int], columns: Columns
    ) -> tuple[np.ndarray, ...]:
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
        wrong = []
        if len(lists) != k:
            wrong.append(
                f"init has {len(lists)} supports for n_components={k}; pass one each, as some of "
                "result.supports, or ask for as many components"
            )
        with Complaints() as check:
            check(refuse, wrong)
            supports = tuple(
                check(features, f"init[{j}]", support, columns.count, columns.names)
                for j, support in enumerate(lists)
            )
        both = sorted(out.intersection(np.concatenate(supports).tolist()))
        if both:
            wrong.append(
                f"{', '.join(map(columns.called, both))} in init and in exclude; leave out one"
            )
        if not self.include:  # sizes go to components in whatever order
            supports = _placed(supports, sizes)
        wrong += [
            f"init[{j}] has {support.size} features, but component {j + 1} may use {s}; name "
            "fewer, or raise n_nonzero_coefs"
            for j, (support, s) in enumerate(zip(supports, sizes))
            if support.size > s
        ]
        if self.disjoint and np.unique(np.concatenate(supports)).size < sum(map(len, supports)):
            wrong.append(
                "init uses a feature in two components, but supports='disjoint'; name each once"
            )
        refuse(wrong)
        return supports

    def beginning_with(self, before: Result) -> Settings:
        """Return the same question; its search begins with an earlier answer if that fits."""
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
        wrong = []
        if supports == "disjoint" and k > n_features:
            wrong.append(
                f"n_components={k} components cannot have disjoint supports among "
                f"n_features={n_features} features; ask for at most {n_features}, or pass "
                "supports='free'"
            )
        elif k > n_features:
            wrong.append(
                f"n_components={k} must be at most n_features={n_features}: there are no more "
                "directions"
            )
        if n_nonzero_coefs is None:
            share = max(n_features // k, 1) if supports == "disjoint" else n_features
            least = k if supports == "common" or self.uncorrelated else 1
            n_nonzero_coefs = max(min(DEFAULT_NONZERO, share), least)
        each = isinstance(n_nonzero_coefs, list)
        checked = tuple(n_nonzero_coefs if each else [n_nonzero_coefs] * k)
        if len(checked) != k:
            wrong.append(
                f"n_nonzero_coefs={n_nonzero_coefs!r} has {len(checked)} entries for "
                f"n_components={k}; pass one integer for all, or one per component"
            )
        if self.n_nonzero_coefs is not None:
            wrong += too_many(checked, n_features)
        refuse(wrong)
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
                f"have j nonzeros to be uncorrelated with the others; ask for at least 1 to {k} "
                "nonzeros, in any order, or pass objective='adjusted'"
            )


def _supports_of(init: Any, columns: Columns, out: Collection[int]) -> Any:
    """Return the supports of a result or a fitted estimator but for the features `out`, by name
    where there are names."""
    answer = answer_of(init)
    if answer is None:
        return init
    if answer.feature_names is None or columns.names is None:
        left = ([j for j in support.tolist() if j not in out] for support in answer.supports)
        return [named(support, columns.names) for support in left]
    left_out = {columns.names[j] for j in out}
    supports = ([answer.feature_names[j] for j in support] for support in answer.supports)
    return [[name for name in support if name not in left_out] for support in supports]


def _placed(supports: tuple[np.ndarray, ...], sizes: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Return the supports in an order that fits the sizes: their own, else by size if that fits."""
    places = sorted(range(len(sizes)), key=lambda j: -sizes[j])
    placed = dict(zip(places, sorted(supports, key=lambda support: -support.size)))
    by_size = tuple(placed[j] for j in range(len(sizes)))
    orders = (supports, by_size)
    return next((o for o in orders if all(a.size <= s for a, s in zip(o, sizes))), supports)
