"""Checks of single parameters: an error names the parameter, its value, the limit and a remedy."""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
# What people call the keywords of other packages, and what to pass instead.
INSTEAD = {
    "alpha": "n_nonzero_coefs=..., the number of nonzero loadings; there is no penalty",
    "ridge_alpha": "n_nonzero_coefs=..., the number of nonzero loadings; there is no penalty",
    "l1_ratio": "n_nonzero_coefs=..., the number of nonzero loadings; there is no penalty",
    "penalty": "n_nonzero_coefs=..., the number of nonzero loadings; there is no penalty",
    "n_nonzero": "n_nonzero_coefs=...",
    "cardinality": "n_nonzero_coefs=...",
    "sparsity": "n_nonzero_coefs=...",
    "s": "n_nonzero_coefs=...",
    "k": "n_components=...",
    "n_topics": "n_components=...",
    "seed": "random_state=...",
    "positive": "nonnegative=True",
    "standardize": "scale=True",
    "whiten": "scale=True to standardise the features",
    "weights": "sample_weight=...",
    "max_iter": "method_options={'max_iter': ...} with a method that iterates, or time_limit=...",
    "cov": "covariance=...",
    "n_threads": "n_jobs=...",
}
# What was wrong with a call before its function began; its first Complaints tell it with the rest.
_EARLIER: ContextVar[tuple[TypeError | ValueError, ...]] = ContextVar("earlier", default=())
# A weight that is positive is at least this part of the largest: moments of others underflow.
LIGHTEST = 1e-100


class Complaints:
    """Checks of several parameters, whose complaints are told in one error.

    >>> with Complaints() as check:
    ...     tol = check(number, "tol", 0.1, 0.0, 1.0)
    ...     k = check(integer, "n_components", 3, 1)

    A check that fails returns None, and the block goes on. An error that the block itself raises
    after a complaint is not told: it may come from that None.
    """

    def __init__(self) -> None:
        self._errors: list[TypeError | ValueError] = []

    def __enter__(self) -> Complaints:
        self._errors += _EARLIER.get()
        _EARLIER.set(())
        return self

    def __call__(self, check: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        try:
            return check(*args, **keywords)
        except (TypeError, ValueError) as error:
            self.add(error)
            return None

    def add(self, error: TypeError | ValueError) -> None:
        self._errors += getattr(error, "told", [error])

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, TypeError | ValueError):
            self.tell()

    def tell(self) -> None:
        """Raise what was complained of, if anything was."""
        told = list({str(error): error for error in self._errors}.values())
        if not told:
            return
        if len(told) == 1:
            raise told[0] from told[0].__cause__
        types = all(isinstance(error, TypeError) for error in told)
        several = (TypeError if types else ValueError)(
            f"{len(told)} problems:" + "".join(f"\n- {error}" for error in told)
        )
        several.told = told  # type: ignore[union-attr]  # for a block around this one
        raise several from None


def integer(name: str, value: Any, low: int, remedy: str = "") -> int:
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(
            f"{name}={value} must be at least {low}" + (f"; {remedy}" if remedy else "")
        )
    return int(value)


def integers(name: str, values: Iterable[Any], low: int, check: Complaints) -> list[int]:
    """Return those of the values that are integers of at least `low`; `check` is told of others."""
    found = [check(integer, name, value, low) for value in values]
    return [value for value in found if value is not None]


def refuse(wrong: Iterable[str]) -> None:
    """Raise one error with these sentences; none if there are none."""
    with Complaints() as check:
        for sentence in wrong:
            check.add(ValueError(sentence))


def refuse_unknown(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError for keywords that are not known, with the right ones if that can be told."""
    with Complaints() as check:
        for name in given:
            check(_refuse_unknown, function, name, known)


def _refuse_unknown(function: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        if name in INSTEAD:
            hint = f"pass {INSTEAD[name]}"
        elif near:
            hint = f"did you mean {near[0]!r}?"
        else:
            hint = f"there are {', '.join(known)}"
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; {hint}")


def known_keywords(function: F) -> F:
    """Let a function answer a keyword that it does not have with the right one, and with all else
    that is wrong: its Complaints end the call before any work."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        try:
            refuse_unknown(name, keywords, known)
        except TypeError as error:
            before = _EARLIER.set(tuple(getattr(error, "told", [error])))
            try:
                function(*args, **{key: keywords[key] for key in keywords if key in known})
                if hasattr(args[0] if args else None, "_check_values"):  # what it was made with
                    args[0]._check_values()
            finally:
                _EARLIER.reset(before)
            raise
        return function(*args, **keywords)

    return cast(F, checked)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def is_mask(values: Sequence[Any]) -> bool:
    """Return whether a list says True or False of every feature or column."""
    return len(values) > 0 and all(isinstance(value, bool | np.bool_) for value in values)


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    if not any(_same(value, option) for option in allowed):
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name}={value!r} is unknown; choose one of {options}")
    return value


def _same(value: Any, option: Any) -> bool:
    if isinstance(option, bool):
        return isinstance(value, bool | np.bool_) and bool(value) == option
    return isinstance(value, str) and value == option


def number(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or math.isnan(value):
        raise TypeError(f"{name} must be a number, got {value!r}")
    value = float(value)
    above = value > low if open_low else value >= low
    below = value < high if open_high else value <= high
    if not (above and below):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise ValueError(f"{name}={value!r} must lie in {left}{low:g}, {high:g}{right}")
    return value


def size(name: str, value: str) -> int:
    """Return the bytes that "2GB" (10^9 each), "2GiB" (2^30 each), "2000000" or "2e6" stands
    for."""
    written = r"((?:\d+\.?\d*|\.\d+)(?:E[+-]?\d{1,2})?)\s*([KMGT]?)(I?)B?"
    found = re.fullmatch(written, value.strip().upper())
    if found is None:
        raise ValueError(f"{name}={value!r} is no size; write '2GB', '500MB' or a number of bytes")
    power = "KMGT".index(found[2]) + 1 if found[2] else 0
    count = float(found[1]) * (1024 if found[3] else 1000) ** power
    if 0 < count < 1:
        raise ValueError(f"{name}={value!r} is less than one byte; write '2GB', '500MB' or more")
    return int(count)


def seconds(name: str, value: Any) -> float | None:
    """Return a positive number of seconds, or None for no limit."""
    return None if value is None else number(name, value, 0.0, np.inf, open_low=True)


def seed(random_state: Any) -> int:
    """Return one integer from an int, a Generator, a RandomState, or fresh entropy for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return integer(
        "random_state", random_state, 0, "pass a nonnegative integer, a Generator or None"
    )


def jobs(n_jobs: Any) -> int:
    """Return the number of threads as in scikit-learn: -1 is every core, None is 1 or what the
    caller's `joblib.parallel_config` says."""
    if n_jobs is None and "joblib" not in sys.modules:
        return 1
    from joblib import effective_n_jobs

    if n_jobs is None:
        return int(effective_n_jobs(None))
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a nonzero integer or None; -1 uses every core")
    return int(effective_n_jobs(int(n_jobs)))


def two_readings(
    name: str, number: int, feature_names: Sequence[str] | None, places: Mapping[str, int]
) -> list[str]:
    """Refuse a number that is a name, too, but of another feature."""
    other = places.get(str(number), number)
    if feature_names is None or other == number or not 0 <= number < len(feature_names):
        return []
    return [
        f"{name} has the number {number}, but feature {number} (counted from 0) is called "
        f"{feature_names[number]!r}, and '{number}' is feature {other}; write "
        f"{feature_names[number]!r} or '{number}'"
    ]


def features(
    name: str, given: Any, n_features: int, feature_names: Sequence[str] | None
) -> np.ndarray:
    """Return the numbers, increasing, of features given by name or number; no one twice.

    All entries that name no feature, and all that are repeated, are in one error.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of features, by name or number, got {given!r}")
    given = list(given)
    if is_mask(given):
        if len(given) != n_features:
            raise ValueError(f"{name} is a mask of {len(given)} entries for {n_features} features")
        return np.flatnonzero(given)
    places = {} if feature_names is None else {n: i for i, n in enumerate(feature_names)}
    found: list[int] = []
    wrong: list[str] = []
    unknown: list[str] = []
    for entry in given:
        if isinstance(entry, str):
            place = places.get(entry)
        elif isinstance(entry, Integral) and not isinstance(entry, bool | np.bool_):
            position = int(entry)
            wrong += two_readings(name, position, feature_names, places)
            place = position if 0 <= position < n_features else None
        else:
            loadings = ", as np.flatnonzero of loadings" if isinstance(entry, Real) else ""
            raise TypeError(
                f"{name} holds {entry!r}; name features by their name or number{loadings}"
            )
        if place is None:
            unknown.append(repr(entry))
        else:
            found.append(place)
    if unknown:
        known = f"numbers are 0 to {n_features - 1}"
        if any(entry.startswith(("'", '"')) for entry in unknown):
            known += "; the features have no names" if not places else _close(unknown, places)
        wrong.append(f"{name}: no feature {', '.join(unknown)}; {known}")
    repeated = sorted({place for place in found if found.count(place) > 1})
    if repeated:
        shown = ", ".join(str(i) if not places else repr(feature_names[i]) for i in repeated)  # type: ignore[index]
        wrong.append(f"{name} names {shown} more than once; name each feature once")
    refuse(wrong)
    return np.array(sorted(found), dtype=np.intp)


def _close(unknown: Sequence[str], places: Iterable[str]) -> str:
    """Return known names that are spelt like the unknown ones."""
    names = list(places)
    near = [n for entry in unknown for n in get_close_matches(entry[1:-1], names, 1)]
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""


def weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return one nonnegative weight per sample, some of them positive; times a power of two."""
    given = np.asarray(sample_weight)
    if given.dtype.kind not in "fiub" or given.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must be one number per sample, shape ({n_samples},); "
            f"got shape {given.shape} of dtype {given.dtype}"
        )
    given = given.astype(np.float64)
    if not np.isfinite(given).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (given < 0).any():
        worst = int(np.argmin(given))
        raise ValueError(
            f"sample_weight must not be negative, but sample {worst} (counted from 0) has "
            f"weight {given[worst]:g}"
        )
    if not given.any():
        raise ValueError(
            "sample_weight is zero for every sample; give at least one a positive weight"
        )
    least, most = float(given[given > 0].min()), float(given.max())
    if least < LIGHTEST * most:
        raise ValueError(
            f"sample_weight has a positive weight of {least:.3g} beside one of {most:.3g}, less "
            f"than {LIGHTEST:g} of it; set such weights to zero"
        )
    return np.ldexp(given, -int(np.frexp(most)[1]))


def like_default(name: str, value: Any, default: Any, least: int) -> None:
    """Refuse an option of another kind than its default; None as a default admits any number.

    Integers are counts, of at least `least`.
    """
    if isinstance(default, bool):
        flag(name, value)
    elif isinstance(default, str):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {value!r}")
    elif isinstance(default, int):
        integer(name, value, least)
    elif value is not None or default is not None:
        number(name, value, -np.inf, np.inf)
