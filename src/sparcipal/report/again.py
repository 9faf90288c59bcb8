"""The command and the lines of Python that give a result once more, from its settings."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
from typing import TYPE_CHECKING, Any

from ..problem.constraints import named

if TYPE_CHECKING:
    from ..problem.result import Result

PLACEHOLDER = "data.csv"  # stands for a file whose name is not known
VERSIONS = ("sparcipal", "numpy", "scipy", "scikit-learn", "numba")
# A keyword -> its default. What is recorded of a question but differs from it has to be said again.
DEFAULTS: dict[str, Any] = {
    "supports": "disjoint",
    "objective": "sum",
    "uncorrelated": False,
    "nonnegative": False,
    "method": "auto",
    "method_options": {},
    "init": None,
    "rank": None,
    "center": True,
    "scale": False,
    "certify": "fast",
    "tol": 1e-6,
    "max_nodes": None,
    "time_limit": None,
    "random_state": 0,
    "include": None,
    "exclude": None,
    "missing": "error",
}
# Keywords that the command line does not have; a question with them is asked in Python only.
PYTHON_ONLY = ("method_options", "init")
SPELLED = {
    "random_state": "--seed",
    "format": "--input-format",
    "ngram_range": "--ngrams",
    "na_values": "--na",
}
NEGATED = ("center", "normalize")  # --no-center


def command(result: Result) -> str | None:
    """Return the shell command, or None where only Python can ask the question."""
    asked = _asked(result)
    if result.settings.get("sample_weight") or any(name in asked for name in PYTHON_ONLY):
        return None
    parts = ["sparcipal", "fit", source_of(result) or PLACEHOLDER]
    if result.n_samples is None:
        parts.append("--covariance")
    k, sizes = len(result.supports), _sizes(result)
    parts += ["-k", f"{k}"] if k > 1 else []
    if isinstance(sizes, dict):
        parts += ["--nonzero-total", f"{sizes['total']}"]
    elif sizes is not None:
        parts += ["-s", _joined(sizes)]
    for name, value in asked.items():
        parts += _option(name, value, result)
    for name, value in _reading(result).items():
        parts += _option(name, value, result)
    return shlex.join(parts)


def python_lines(result: Result) -> str:
    """Return lines that read the data and ask the same question."""
    reading = "".join(f", {name}={value!r}" for name, value in _reading(result).items())
    source = source_of(result)
    file = PLACEHOLDER if source is None or source == "-" else source
    data = f"read({file!r}{reading})"
    k, sizes = len(result.supports), _sizes(result)
    asked: dict[str, Any] = {"n_components": k} if k > 1 else {}
    asked |= {} if sizes is None else {"n_nonzero_coefs": sizes}
    asked |= _asked(result)
    if "include" in asked:
        nested = any(isinstance(own, list) for own in asked["include"])
        groups = asked["include"] if nested else [asked["include"]]
        named_ = [named(own, result.feature_names) for own in groups]
        asked["include"] = named_ if nested else named_[0]
    if "exclude" in asked:
        asked["exclude"] = named(asked["exclude"], result.feature_names)
    told = [f"{name}={value!r}" for name, value in asked.items()]
    if result.settings.get("sample_weight"):
        told.append("sample_weight=weights")
    if result.n_samples is None:
        what, given = (
            f"matrix = {data}",
            ["covariance=matrix.X, feature_names=matrix.feature_names"],
        )
    else:
        what, given = f"table = {data}", ["table"]
    return (
        "from sparcipal import read, sparse_pca\n\n"
        f"{what}\n"
        f"result = sparse_pca({', '.join(given + told)})\n"
        "print(result)"
    )


def source_of(result: Result) -> str | None:
    """Return the name of the file that the data came from, if it is known."""
    source = result.info.get("source")
    return source if isinstance(source, str) else None


def versions() -> list[tuple[str, str]]:
    """Return the packages an answer may depend on, with their versions, and Python's."""
    found = [(name, importlib.metadata.version(name)) for name in VERSIONS]
    return [*found, ("Python", platform.python_version())]


def _asked(result: Result) -> dict[str, Any]:
    """Return the keywords that were not left at their defaults, but for the sizes."""
    told = result.settings
    asked = {
        name: told[name]
        for name, default in DEFAULTS.items()
        if name in told and told[name] != default and told[name] not in (None, [], {})
    }
    if asked.get("supports") == "free" or "uncorrelated" in asked:  # it follows from these
        asked.pop("objective", None)
    if result.n_samples is None:  # a covariance is neither centred nor scaled
        asked = {name: asked[name] for name in asked if name not in ("center", "scale")}
    if len(result.supports) == 1 and "include" in asked and isinstance(asked["include"][0], list):
        asked["include"] = asked["include"][0]
    return asked


def _sizes(result: Result) -> Any:
    """Return the nonzeros as they were asked for: of each component, alike or not, or in all."""
    total = result.settings.get("n_nonzero_total")
    if isinstance(total, int):
        return {"total": total}
    sizes = result.settings.get("n_nonzero_coefs")
    alike = isinstance(sizes, list) and len(set(sizes)) == 1
    return sizes[0] if alike and isinstance(sizes, list) else sizes


def _reading(result: Result) -> dict[str, Any]:
    """Return the keywords of `read` that are recorded."""
    read = result.settings.get("read")
    if not isinstance(read, dict):
        return {}
    known = {name: value for name, value in read.items() if str(name).isidentifier()}
    return {
        n: tuple(v) if n == "ngram_range" and isinstance(v, list) else v for n, v in known.items()
    }


def _option(name: str, value: Any, result: Result) -> list[str]:
    """Return a keyword as the option that stands for it."""
    option = SPELLED.get(name, f"--{name.replace('_', '-')}")
    if name == "include":
        groups = value if isinstance(value[0], list) else [value]
        return [part for group in groups for part in (option, _features(group, result))]
    if name == "exclude":
        return [option, _features(value, result)]
    if name in NEGATED and value is False:
        return [f"--no-{name}"]
    if name == "ngram_range":
        return [option, f"{value[-1]}"]
    if value is True:
        return [option]
    if value is False or value is None:
        return [option, "none"]
    return [option, _joined(value)]


def _features(features: list[Any], result: Result) -> str:
    """Return features by name, or by number where a name has a comma."""
    names = [result.feature_name(f) if isinstance(f, int) else f"{f}" for f in features]
    told = (f"{f}" if "," in name else name for f, name in zip(features, names))
    return ",".join(told if result.feature_names is not None else map(str, features))


def _joined(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else f"{value}"
