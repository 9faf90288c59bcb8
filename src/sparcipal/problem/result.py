"""Result, Certificate, Status: what a run says, frozen, printable, and the same after a JSON round
trip."""

from __future__ import annotations

import enum
import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .reading import (
    Kind,
    anything,
    entries,
    features,
    integer,
    many,
    maybe,
    number,
    numbers,
    open_record,
    plain,
    record,
    text,
    truth,
    word,
)
from .saving import (
    LIMIT,
    document_of,
    holds_alternatives,
    proof_path,
    read_text,
    text_of,
    write_together,
)


class Status(enum.StrEnum):
    """How a run ended. `sentence` says it in words."""

    OPTIMAL = "optimal"
    GAP = "gap"
    NODE_LIMIT = "node_limit"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Status.OPTIMAL: "proved optimal to the requested tolerance",
    Status.GAP: "best answer found; the optimum is proved to lie within the gap",
    Status.NODE_LIMIT: "stopped at the node limit; the gap is proved",
    Status.TIME_LIMIT: "stopped by the time limit; the gap is proved",
    Status.INTERRUPTED: "stopped by the user; the gap is proved",
}


@dataclass(frozen=True)
class Bound:
    """One proven upper bound on the optimum, with all that is needed to recompute it from the
    data; `margin` is the part of `value` that is there for the rounding of the covariance."""

    name: str
    value: float
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    margin: float = field(default=0.0, repr=False)


@dataclass(frozen=True)
class Certificate:
    """`value - rounding <= optimum <= bound`, and why.

    Attributes
    ----------
    value : float
        What the components explain: the sum of their variances (adjusted when supports overlap).
    bound : float
        No k components of the requested kind explain more. Includes all rounding.
    rounding : float
        `value` is x'Ax as computed; exact arithmetic gives at least `value - rounding`.
    status : Status
    bounds : tuple of Bound
        Every bound that was proved, the smallest first: `bounds[0].value == bound`.
    tol : float
        The relative gap that counts as optimal.
    nodes : int
        Nodes of the branch and bound.
    eliminated : int
        Features that were proved unnecessary, or that carry no variance; not those excluded.
    message : str
        What a user could do about the gap.
    guarantees : dict
        What the method's paper promises in advance, by name: fractions of the optimum that value
        and bound prove to be reached.
    unit : float
        A power of two: the proofs speak of the covariance divided by it.
    screening : dict
        Empty unless only some of the features were searched. Then: how many were
        "kept" and "dropped", the "largest_dropped" variance, the "rule" of the proof, the bound
        "inside" the kept features, the bound of everything "touching" a dropped one, and two
        claims: "support_unchanged" (no optimum uses a dropped feature) and "bound_holds" (what
        bounds the kept features bounds all).
    repair : dict
        Empty unless covariances come from pairs of features (`missing="pairwise"`). Then: by how
        much they were "moved" to be positive semidefinite (the Frobenius norm), which part of their
        norm that is ("relative"), and the "matrix" that value and bound speak of.
    """

    value: float
    bound: float
    rounding: float
    status: Status
    bounds: tuple[Bound, ...]
    tol: float
    nodes: int = 0
    eliminated: int = 0
    message: str = ""
    guarantees: dict[str, float] = field(default_factory=dict)
    unit: float = 1.0
    screening: dict[str, Any] = field(default_factory=dict)
    repair: dict[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """(bound - value) / value: the optimum is at most this fraction above the value."""
        if self.bound <= self.value:
            return 0.0
        return (self.bound - self.value) / self.value if self.value > 0 else math.inf

    @property
    def proved_by(self) -> str:
        return self.bounds[0].name

    def __str__(self) -> str:
        from ..report.text import certificate_text

        return certificate_text(self)

    def _repr_html_(self) -> str:
        from ..report.html import certificate_html

        return certificate_html(self)


@dataclass(frozen=True)
class Result:
    """Sparse components and their certificate.

    Attributes
    ----------
    supports : tuple of ndarray
        The features of each component, increasing; components are ordered by variance.
    weights : tuple of ndarray
        The loadings on those features, unit norm, the largest positive.
    variances : ndarray
        Variance explained by each component; with `objective="adjusted"`, the default for free
        supports, what it explains beyond those before it.
    total_variance : float
        The trace of the covariance.
    n_features, n_samples : int
        Of the data; `n_samples` is None for a given covariance.
    feature_names : tuple of str or None
    mean, scale : ndarray or None
        What was subtracted from and divided out of the data.
    settings : dict
        What was asked for.
    certificate : Certificate
    n_iter : int
    note : str
        What the method wants the user to know.
    """

    supports: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    variances: np.ndarray
    total_variance: float
    n_features: int
    n_samples: int | None
    feature_names: tuple[str, ...] | None
    mean: np.ndarray | None
    scale: np.ndarray | None
    settings: dict[str, Any]
    certificate: Certificate
    n_iter: int = 0
    note: str = ""
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def components(self) -> np.ndarray:
        """The components as rows of a dense array (k, n_features)."""
        out = np.zeros((len(self.supports), self.n_features))
        for row, support, weights in zip(out, self.supports, self.weights):
            row[support] = weights
        return out

    @property
    def value(self) -> float:
        return self.certificate.value

    @property
    def bound(self) -> float:
        return self.certificate.bound

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def status(self) -> Status:
        return self.certificate.status

    @property
    def largest_correlation(self) -> float:
        """The largest correlation between the scores of two components; nan if not known."""
        return self._redundancy("correlation", 0.0)

    @property
    def adjusted_variance(self) -> float:
        """What all components explain when each counts only beyond those before it, in the best
        order, which may be another one than shown; of more than eight, in the order shown."""
        return self._redundancy("adjusted", self.value)

    def _redundancy(self, name: str, alone: float) -> float:
        if len(self.supports) == 1:
            return alone
        told = self.info.get("redundancy")
        found = told.get(name) if isinstance(told, dict) else None
        return float(found) if isinstance(found, float | int) else math.nan

    def names(self, component: int) -> list[str]:
        """Return the feature names of one component, the strongest first."""
        support, weights = self.supports[component], self.weights[component]
        order = np.argsort(-np.abs(weights), kind="stable")
        return [self.feature_name(int(support[i])) for i in order]

    def feature_name(self, index: int) -> str:
        return self.feature_names[index] if self.feature_names is not None else f"x{index}"

    def table(self) -> Any:
        """Components, features, weights and variances as a table that prints."""
        from ..report.text import ComponentTable

        return ComponentTable(self)

    def transform(self, X: Any) -> Any:
        """Return the scores of samples, one column per component: (X - mean) / scale @ components'.

        X is what `sparse_pca` takes, or a list of texts where words were counted. Columns are found
        by their names where both have names, and new texts are counted as those of the fit were.
        What dask makes is scored lazily.
        """
        from ..data.samples import scored

        return scored(self, X)

    def __repr__(self) -> str:
        from ..report.words import at_least, at_most, ending, gap_percent, limits

        figures = (
            f"{len(self.supports)} component(s), value {at_least(self.value)}, "
            f"bound {at_most(self.bound)}, gap {gap_percent(self.gap)}"
        )
        return f"<Result: {', '.join([figures, ending(self.certificate)[0], *limits(self)])}>"

    def __str__(self) -> str:
        from ..report.text import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        from ..report.html import result_html

        return result_html(self)

    def to_json(self, *, proof: bool = True, plain: bool = False) -> str:
        """Return the result as a JSON document. Without `proof`, the claim only: it cannot be
        rechecked. If `plain`, arrays are lists of numbers, for readers that know nothing of this
        package."""
        return text_of(self if proof else _claim(self), plain=plain)

    @staticmethod
    def from_json(text: str) -> Result:
        """Invert `to_json`; ValueError when the document is not a result."""
        try:
            parts = document_of(text)
            if holds_alternatives(parts):
                raise ValueError(
                    "these are alternatives to one; print them with Alternatives.load, recheck "
                    "them with verify, or name the result that they were asked of"
                )
            result = result_from(parts)
        except RecursionError as error:
            raise ValueError("not a sparcipal result: nested too deeply") from error
        except ValueError as error:
            raise ValueError(f"not a sparcipal result: {error}") from error
        return result

    def save(self, path: str | os.PathLike[str], *, proof: bool = True) -> None:
        """Write the claim to `path` and, when asked, the proof to `<path>.proof` beside it.

        Each file is replaced in one step: a reader sees the old one or the new one, and never a
        proof of another claim.
        """
        target = Path(path)
        beside = proof_path(target)
        texts = {target: self.to_json(proof=False)} | ({beside: self.to_json()} if proof else {})
        write_together(texts, stale=beside)

    @staticmethod
    def load(path: str | os.PathLike[str], *, proof: bool = True, limit: int = LIMIT) -> Result:
        """Read a saved result, with its proof when that is wanted and lies beside it.

        Neither file may be a pipe or a device, or have more than `limit` bytes.
        """
        target = Path(path)
        claim = _read_from(target, limit)
        beside = proof_path(target)
        if not (proof and beside.exists()):
            return claim
        full = _read_from(beside, limit)
        if full.to_json(proof=False) != claim.to_json(proof=False):
            raise ValueError(
                f"{beside} belongs to another result than {target}: one of the two was changed or "
                "replaced since they were saved together, so that nothing is proved; take both "
                "from where they were saved, or fit and save again"
            )
        return full


def answer_of(given: Any) -> Result | None:
    """Return the result that was given, or that of a fitted estimator; None for anything else."""
    if isinstance(given, Result):
        return given
    found = getattr(given, "__dict__", {}).get("result_")
    if found is None and callable(getattr(given, "fit", None)):
        name = given.__name__ if isinstance(given, type) else type(given).__name__
        raise TypeError(f"{name} is not fitted; call fit(X) on it before, and pass what it returns")
    return found if isinstance(found, Result) else None


def _read_from(path: Path, limit: int) -> Result:
    text = read_text(path, limit)
    try:
        return Result.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _claim(result: Result) -> Result:
    bare = tuple(replace(b, data={}) for b in result.certificate.bounds)
    repair = {key: told for key, told in result.certificate.repair.items() if key != "matrix"}
    return replace(result, certificate=replace(result.certificate, bounds=bare, repair=repair))


def result_from(parts: Any) -> Result:
    """Return the result of these parts of a document; ValueError where an entry is not what it
    should be, so that a result can be printed, and asked about. Whether any of it is true is a
    question for `verify`."""
    told = entries(parts, "Result", RESULT, OF_NO_CLAIM)
    certificate = told.pop("certificate")
    bounds = tuple(Bound(**bound) for bound in certificate.pop("bounds"))
    status, names = Status(certificate.pop("status")), told.pop("feature_names")
    result = Result(
        certificate=Certificate(status=status, bounds=bounds, **certificate),
        feature_names=None if names is None else tuple(names),
        supports=tuple(told.pop("supports")),
        weights=tuple(told.pop("weights")),
        **told,
    )
    _check_shapes(result)
    return result


_SETTINGS: dict[str, Kind] = {
    "n_components": integer(1),
    "n_nonzero_coefs": many(integer(1), least=1),
    "supports": word("disjoint", "free", "orthogonal", "common"),
    "objective": word("sum", "adjusted"),
    **dict.fromkeys(("uncorrelated", "nonnegative", "center", "scale", "sample_weight"), truth),
    "tol": number(0.0),
    "max_nodes": maybe(integer()),
    "time_limit": maybe(number()),
    "n_nonzero_total": maybe(integer(1)),
    "include": maybe(many(many(integer(0)), least=1)),
    "exclude": maybe(many(integer(0))),
    "missing": maybe(word("rows", "mean", "median", "pairwise")),
    "method": text,
    "method_options": open_record({}, plain),
    "rank": maybe(integer(1)),
    "read": open_record({"format": text, "ngram_range": many(integer(1), least=2)}, plain),
}
_BOUND: dict[str, Kind] = {
    "name": text,
    "value": number(infinite=True),
    "data": open_record({}, anything),
    "margin": number(0.0),
}
_SCREENING: dict[str, Kind] = {
    "kept": integer(1),
    "dropped": integer(0),
    "largest_dropped": number(0.0),
    "rule": word("variances", "prices", "rows", "nothing dropped"),
    "inside": number(),
    "touching": number(),
    "support_unchanged": truth,
    "bound_holds": truth,
}
_REPAIR: dict[str, Kind] = {"moved": number(0.0), "relative": number(0.0), "matrix": anything}
_CERTIFICATE: dict[str, Kind] = {
    "value": number(),
    "bound": number(infinite=True),
    "rounding": number(0.0),
    "status": word(*Status),
    "bounds": many(record(_BOUND, ("data", "margin")), least=1),
    "tol": number(0.0),
    "nodes": integer(0),
    "eliminated": integer(0),
    "message": text,
    "guarantees": open_record({}, number()),
    "unit": number(0.0),
    "screening": lambda raw, where: raw if raw == {} else entries(raw, where, _SCREENING),
    "repair": lambda raw, where: raw if raw == {} else entries(raw, where, _REPAIR, ("matrix",)),
}
_COUNTED: dict[str, Kind] = {"weighting": word("counts", "presence", "log", "tfidf")}
# What the solver tells beside the claim. Nothing of it is rechecked, but it prints.
_INFO: dict[str, Kind] = {
    "source": text,
    "notes": many(text),
    "redundancy": record({"correlation": number(), "adjusted": number()}),
    "texts": open_record({"options": open_record(_COUNTED, plain)}, anything),
    "missing": open_record({}, anything),
    "regression": open_record({}, anything),
    "estimator": open_record({}, plain),
}
RESULT: dict[str, Kind] = {
    "supports": many(features(least=1), least=1),
    "weights": many(numbers, least=1),
    "variances": numbers,
    "total_variance": number(),
    "n_features": integer(1, 2**40),
    "n_samples": maybe(integer(1)),
    "feature_names": maybe(many(text)),
    "mean": maybe(numbers),
    "scale": maybe(numbers),
    "settings": open_record(_SETTINGS, plain, needed=("n_nonzero_coefs", "supports")),
    "certificate": record(
        _CERTIFICATE,
        ("nodes", "eliminated", "message", "guarantees", "unit", "screening", "repair"),
    ),
    "n_iter": integer(0),
    "note": text,
    "info": open_record(_INFO, anything),
}
OF_NO_CLAIM = ("n_iter", "note", "info")


def _check_shapes(result: Result) -> None:
    """Raise ValueError unless components, names, means and constraints fit one another."""
    k, p = len(result.supports), result.n_features
    if not k == len(result.weights) == result.variances.size:
        raise ValueError("there is not one variance and one list of loadings per component")
    for support, weights in zip(result.supports, result.weights):
        if support.size != weights.size or support[-1] >= p:
            raise ValueError(f"a support does not name features of 0..{p - 1} with their loadings")
    for name, what in (("feature_names", "feature names"), ("mean", "means"), ("scale", "scales")):
        told = getattr(result, name)
        if told is not None and len(told) != p:
            raise ValueError(f"{len(told)} {what} for {p} features")
    if result.scale is not None and not (result.scale > 0).all():
        raise ValueError("a scale is not positive")
    settings = result.settings
    for named in (settings.get("exclude"), *(settings.get("include") or ())):
        if max(named or (), default=0) >= p:
            raise ValueError(f"include and exclude do not name features of 0..{p - 1}")
