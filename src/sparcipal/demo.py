"""The demo's corpus is the docstrings of NumPy, SciPy and scikit-learn, which are always there.

Walking the packages only imports their public modules; there is no download. A paragraph that a
library repeats word for word in many docstrings (a note on backends, a pointer to the user guide)
would look like a topic, so every paragraph counts once.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .data.table import Table, as_table
from .problem.result import Result

PACKAGES = ("numpy", "scipy", "sklearn")
SHORTEST = 200  # characters; shorter docstrings are left out
SKIPPED = {"conftest", "distutils", "externals", "f2py", "setup", "testing", "tests"}
N_COMPONENTS = 8
N_WORDS = 10


@dataclass(frozen=True)
class Demo:
    """A demo holds the corpus, its joint components, and those found one at a time."""

    table: Table
    joint: Result
    one_at_a_time: Result

    @property
    def gain(self) -> float:
        """Return the fraction by which the joint components explain more."""
        return self.joint.value / self.one_at_a_time.value - 1.0

    @property
    def set_aside(self) -> int:
        """Count the words that the proof could leave out; its bound holds for them as well."""
        core = self.joint.certificate.bounds[0].data.get("features")
        constant = self.joint.certificate.eliminated
        return constant if core is None else self.joint.n_features - len(core)


def run(
    say: Callable[[str], object] = lambda sentence: None,
    callback: Callable[[Any], object] | None = None,
    n_jobs: int | None = None,
    certify: str = "fast",
) -> Demo:
    """Build the corpus and find its topics; `say` gets sentences, `callback` the progress."""
    from .fit import sparse_pca

    say(f"reading the docstrings of {', '.join(PACKAGES)}")
    table = docstring_table()
    n, p = table.shape
    say(f"{n} docstrings, {p} words; finding {N_COMPONENTS} components of {N_WORDS} words jointly")
    asked: dict[str, Any] = {
        "n_components": N_COMPONENTS,
        "n_nonzero_coefs": N_WORDS,
        "n_jobs": n_jobs,
    }
    joint = sparse_pca(table, callback=callback, certify=certify, **asked)
    say("the same one at a time, for comparison")
    one_at_a_time = sparse_pca(table, method="tpower", certify=False, **asked)
    return Demo(table, joint, one_at_a_time)


def docstring_table() -> Table:
    """Count words by docstring, without the words of more than a fifth of the docstrings."""
    from .data.files.documents import Counting

    rule = Counting(token_pattern=r"\b[a-zA-Z]{2,}\b", min_df=5, max_df=0.2)
    vectorizer = rule.vectorizer(None)
    names, texts = zip(*docstrings())
    counts = vectorizer.fit_transform(texts)
    return as_table(Table(counts, tuple(vectorizer.get_feature_names_out()), names))


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield names and docstrings of public functions, classes and methods, each text once."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in PACKAGES:
            for module in _modules(package):
                for name, thing in _members(module):
                    text = _unseen(thing, seen)
                    if text is not None:
                        yield name, text


def _modules(package: str) -> Iterator[ModuleType]:
    """Yield the package and its public modules by name, without those that fail to import."""
    root = importlib.import_module(package)
    yield root
    found = pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None)
    for name in sorted(info.name for info in found if _is_public(info.name)):
        try:
            yield importlib.import_module(name)
        except Exception:  # an optional dependency is missing, or the module is deprecated
            continue


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") or part in SKIPPED for part in name.split("."))


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    package = module.__name__.partition(".")[0]
    for name in sorted(vars(module)):
        if name.startswith("_"):
            continue
        thing = getattr(module, name, None)
        if not (inspect.isclass(thing) or inspect.isroutine(thing) or _is_ufunc(thing)):
            continue
        yield f"{module.__name__}.{name}", thing
        if inspect.isclass(thing) and str(thing.__module__).startswith(package):
            for method in sorted(vars(thing)):
                if not method.startswith("_"):
                    yield f"{module.__name__}.{name}.{method}", getattr(thing, method, None)


def _is_ufunc(thing: Any) -> bool:
    return type(thing).__name__ == "ufunc"


def _unseen(thing: Any, seen: set[str]) -> str | None:
    """Return a docstring without paragraphs seen before; None when little is left."""
    try:
        text = inspect.getdoc(thing)
    except Exception:  # a lazy attribute may fail in any way
        return None
    if not isinstance(text, str) or len(text) < SHORTEST:
        return None
    fresh = []
    for paragraph in text.split("\n\n"):
        if paragraph not in seen:
            seen.add(paragraph)
            fresh.append(paragraph)
    left = "\n\n".join(fresh)
    return left if len(left) >= SHORTEST else None
