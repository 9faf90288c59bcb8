"""Checks of the keywords of a fit that need no data, one by one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .problem.parameters import Complaints, integer, integers, like_default, refuse
from .search.registry import get_method

DENSE = "for dense loadings use ordinary PCA"


def kept(given: Any) -> Any:
    """Return what an iterator yields as a list, which can be read more than once."""
    return list(given) if isinstance(given, Iterator) else given


def sizes_of(given: Any) -> Any:
    """Return `n_nonzero_coefs` as None, an integer, a list of integers, or a dict for a total."""
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
    with Complaints() as check:
        return integers("n_nonzero_coefs", given, 1, check)


def fine(given: Any) -> tuple[int, ...]:
    """Return the positive integers of a list; its other entries were refused."""
    listed = given if isinstance(given, Sequence | np.ndarray) else ()
    counts = (v for v in listed if isinstance(v, Integral) and not isinstance(v, bool | np.bool_))
    return tuple(v for v in map(int, counts) if v > 0)


def count_of_lists(sizes: Any, *supports: Any) -> int:
    """Return the number of components that a list of sizes, or lists of features, are for; 1 if
    there are none."""
    if isinstance(sizes, list | tuple) and sizes:
        return len(sizes)
    nested = [
        given
        for given in supports
        if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple)
    ]
    return len(nested[0]) if nested else 1


def objective_of(
    supports: str, objective: str | None, nonnegative: bool, uncorrelated: bool
) -> str:
    """Return the objective of these supports, or an error for all that contradicts itself."""
    wrong = []
    if supports == "free" and objective == "sum" and not uncorrelated:
        wrong.append(
            "supports='free' with objective='sum' would return the best component n_components "
            "times; pass objective='adjusted', or supports='orthogonal'"
        )
    if supports in ("orthogonal", "common") and objective == "adjusted":
        remedy = {
            "orthogonal": "leave it out, or pass supports='free'",
            "common": "leave it out: components in a common set are uncorrelated, so that "
            "both objectives are the same",
        }[supports]
        wrong.append(f"supports={supports!r} goes with objective='sum'; {remedy}")
    if nonnegative and supports == "orthogonal":
        wrong.append(
            "supports='orthogonal' with nonnegative=True: nonnegative components that are "
            "orthogonal share no feature; pass supports='disjoint'"
        )
    if nonnegative and supports == "common":
        wrong.append(
            "supports='common' with nonnegative=True: the components of a common set are its "
            "principal components, which have both signs; pass supports='free' or "
            "supports='disjoint'"
        )
    if uncorrelated and nonnegative:
        wrong.append(
            "uncorrelated=True with nonnegative=True: nonnegative components that are uncorrelated "
            "need not exist; pass objective='adjusted'"
        )
    if uncorrelated and supports == "orthogonal":
        wrong.append(
            "uncorrelated=True with supports='orthogonal': sparse components that are both need "
            "not exist; pass supports='free', or leave uncorrelated out"
        )
    refuse(wrong)
    if supports == "free" or (uncorrelated and supports == "disjoint"):
        return "adjusted"
    return objective or "sum"


def count(n_components: Any) -> int:
    """Return the number of components; a share of the variance is answered in words."""
    if isinstance(n_components, float) and 0 < n_components < 1:
        raise TypeError(
            f"n_components must be an integer, got {n_components!r}; a share of the variance does "
            "not say how many sparse components to take: ask for some, and see "
            "explained_variance_ratio_"
        )
    return integer("n_components", n_components, 1)


def options_of(name: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a method's own keywords, checked against what it takes; the name is checked, too."""
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
    with Complaints() as check:
        for key in options:
            if key not in takes:
                known = f"it takes {', '.join(takes)}" if takes else "it takes none"
                check.add(
                    ValueError(f"method_options: method={name!r} has no option {key!r}; {known}")
                )
                continue
            least = 1 if key.startswith("max_") else 0
            check(like_default, f"method_options[{key!r}]", options[key], defaults[key], least)
    return dict(options)


def of_left(sentence: str, available: int | None, n_features: int) -> str:
    """Return a complaint as one about the features that are left, where some are excluded."""
    if available is None or available == n_features:
        return sentence
    sentence = sentence.replace(DENSE, "exclude fewer, or ask for fewer nonzeros")
    return f"exclude leaves {available} of {n_features} features: {sentence}"


def too_many(sizes: Sequence[int], n_features: int) -> list[str]:
    """Return what is wrong with numbers of nonzeros that no component can have."""
    large = ", ".join(str(s) for s in sorted(set(sizes)) if s > n_features)
    if not large:
        return []
    return [f"n_nonzero_coefs={large} must be at most n_features={n_features}; {DENSE}"]
