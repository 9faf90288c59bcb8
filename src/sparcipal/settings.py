"""Parameters checked before any work starts: an error names the parameter, its value, the limit and
a remedy."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from .search.method import Method
from .search.registry import get_method, sharing_methods

CERTIFY = ("fast", "full", False)
SUPPORTS = ("disjoint", "free")
DEFAULT_NONZERO = 10


def integer(name: str, value: Any, low: int, remedy: str = "") -> int:
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(
            f"{name}={value} must be at least {low}" + (f"; {remedy}" if remedy else "")
        )
    return int(value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    if not any(_same(value, option) for option in allowed):
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name}={value!r} is unknown; choose one of {options}")
    return value


def _same(value: Any, option: Any) -> bool:
    if isinstance(option, bool):
        return isinstance(value, bool | np.bool_) and bool(value) == option
    return isinstance(value, str) and value == option


def number(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or math.isnan(value):
        raise TypeError(f"{name} must be a number, got {value!r}")
    value = float(value)
    inside = (value > low if open_low else value >= low) and value <= high
    if not inside:
        bracket = "(" if open_low else "["
        raise ValueError(f"{name}={value!r} must lie in {bracket}{low:g}, {high:g}]")
    return value


def seconds(name: str, value: Any) -> float | None:
    """A checked limit of time; None is none."""
    return None if value is None else number(name, value, 0.0, np.inf, open_low=True)


def budget(
    n_nonzero_coefs: Any, n_components: Any, supports: str, n_features: int, method: str
) -> tuple[tuple[int, ...], int | None]:
    """Cardinalities and, for `{"total": T}`, the nonzeros that all components have together."""
    if not isinstance(n_nonzero_coefs, Mapping):
        return cardinalities(n_nonzero_coefs, n_components, supports, n_features), None
    k = integer("n_components", n_components, 1)
    if list(n_nonzero_coefs) != ["total"]:
        raise ValueError(
            f"n_nonzero_coefs={dict(n_nonzero_coefs)!r} must be {{'total': ...}}, the nonzeros of "
            "all components together; otherwise pass an integer, or one per component"
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
            f"n_nonzero_coefs={{'total': {total}}} needs supports='disjoint', got {supports!r}; "
            "with overlapping supports pass one integer per component"
        )
    if not get_method(method).shares_totals:
        sharing = " or ".join(map(repr, sharing_methods()))
        raise ValueError(
            f"n_nonzero_coefs={{'total': {total}}} needs method={sharing}, "
            f"got {method!r}; this method takes one integer per component"
        )
    if k == 1:
        return (total,), None
    return (total - k + 1,) * k, total


def cardinalities(
    n_nonzero_coefs: Any, n_components: Any, supports: str, n_features: int
) -> tuple[int, ...]:
    """One cardinality per component, or an error that says what is possible with these features."""
    k = integer("n_components", n_components, 1)
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
        return (min(DEFAULT_NONZERO, share),) * k
    if isinstance(n_nonzero_coefs, Integral):
        sizes = [n_nonzero_coefs] * k
    elif isinstance(n_nonzero_coefs, Sequence | np.ndarray) and np.ndim(n_nonzero_coefs) == 1:
        sizes = list(n_nonzero_coefs)
        if len(sizes) != k:
            raise ValueError(
                f"n_nonzero_coefs={n_nonzero_coefs!r} has {len(sizes)} entries for "
                f"n_components={k}; pass one integer for all, or one per component"
            )
    else:
        raise TypeError(
            "n_nonzero_coefs must be an integer or one integer per component, got "
            f"{n_nonzero_coefs!r}"
        )
    checked = tuple(integer("n_nonzero_coefs", s, 1) for s in sizes)
    if max(checked) > n_features:
        raise ValueError(
            f"n_nonzero_coefs={max(checked)} must be at most n_features={n_features}; for dense "
            "loadings use ordinary PCA"
        )
    if supports == "disjoint" and sum(checked) > n_features:
        raise ValueError(
            f"{k} disjoint components of n_nonzero_coefs={n_nonzero_coefs} need {sum(checked)} "
            f"features, but there are {n_features}; ask for at most {n_features // k} nonzeros "
            "each, for fewer components, or pass supports='free'"
        )
    return checked


def method_and_options(
    name: Any, options: Mapping[str, Any] | None
) -> tuple[Method, dict[str, Any]]:
    """The method, and its own keywords checked against what it takes."""
    if not isinstance(name, str):
        raise TypeError(f"method must be a string, got {name!r}")
    method = get_method(name)
    if options is None:
        return method, {}
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
        _check_like(f"method_options[{key!r}]", options[key], defaults[key], least)
    return method, dict(options)


def _check_like(name: str, value: Any, default: Any, least: int) -> None:
    """An option must be of its default's kind; None as a default admits any number.

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


def seed(random_state: Any) -> int:
    """One integer from an int, a Generator, a RandomState, or fresh entropy for None."""
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
    """The number of threads as in scikit-learn: -1 is every core, None is 1 or what the caller's
    `joblib.parallel_config` says."""
    if n_jobs is None and "joblib" not in sys.modules:
        return 1
    from joblib import effective_n_jobs

    if n_jobs is None:
        return int(effective_n_jobs(None))
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a nonzero integer or None; -1 uses every core")
    return int(effective_n_jobs(int(n_jobs)))


def sample_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    return None if sample_weight is None else given_weights(sample_weight, n_samples)


def given_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "fiub" or weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must be one number per sample, shape ({n_samples},); "
            f"got shape {weights.shape} of dtype {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weights < 0).any():
        worst = int(np.argmin(weights))
        raise ValueError(
            f"sample_weight must not be negative, but sample {worst} has weight {weights[worst]:g}"
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every sample; give at least one a positive weight"
        )
    return weights
