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

from .saving import (
    LIMIT,
    document_of,
    holds_alternatives,
    proof_path,
    read_text,
    refuse_unknown,
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
        Empty unless features were dropped by their variance before the search. Then: how many were
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
        return (
            f"<Result: {', '.join([figures, ending(self.certificate)[0], *limits(self.settings)])}>"
        )

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
        # OverflowError: an integer too large for a float, or an infinity where a size is expected.
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
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


def result_from(parts: dict[str, Any]) -> Result:
    """Return the result of these parts of a document; ValueError, among others, when they are
    none."""
    result = _from_document(parts)
    _check_types(result)
    return result


def _from_document(parts: dict[str, Any]) -> Result:
    refuse_unknown(parts, Result)
    certificate = parts.pop("certificate")
    bounds = tuple(Bound(**b) for b in certificate.pop("bounds"))
    status = Status(certificate.pop("status"))
    names = parts.pop("feature_names")
    for name in ("mean", "scale"):
        if isinstance(parts.get(name), list):
            parts[name] = _array(parts[name], np.float64)
    return Result(
        certificate=Certificate(status=status, bounds=bounds, **certificate),
        feature_names=None if names is None else _texts(names),
        supports=tuple(_array(a, np.intp) for a in parts.pop("supports")),
        weights=tuple(_array(a, np.float64) for a in parts.pop("weights")),
        variances=_array(parts.pop("variances"), np.float64),
        **parts,
    )


_TYPES: dict[str, tuple[type, ...]] = {
    "total_variance": (float,),
    "n_features": (int,),
    "n_samples": (int, type(None)),
    "mean": (np.ndarray, type(None)),
    "scale": (np.ndarray, type(None)),
    "settings": (dict,),
    "n_iter": (int,),
    "note": (str,),
    "info": (dict,),
    "certificate.value": (float,),
    "certificate.bound": (float,),
    "certificate.rounding": (float,),
    "certificate.tol": (float,),
    "certificate.unit": (float,),
    "certificate.nodes": (int,),
    "certificate.eliminated": (int,),
    "certificate.message": (str,),
    "certificate.guarantees": (dict,),
    "certificate.screening": (dict,),
    "certificate.repair": (dict,),
}


def _check_types(result: Result) -> None:
    """Raise ValueError unless the fields have the types on which printing and checking rely."""
    for name, allowed in _TYPES.items():
        value = result
        for part in name.split("."):
            value = getattr(value, part)
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise ValueError(f"{name} is of type {type(value).__name__}")
    for bound in result.certificate.bounds:
        if not (isinstance(bound.name, str) and isinstance(bound.value, float)):
            raise ValueError("a bound has no name or no value")
        if not isinstance(bound.data, dict):
            raise ValueError(f"the bound {bound.name!r} has no data")
    for promised in result.certificate.guarantees.values():
        if not isinstance(promised, float | int) or not math.isfinite(promised):
            raise ValueError("a guarantee is no number")
    _check_shapes(result)


def _check_shapes(result: Result) -> None:
    """Raise ValueError unless components, names and screening fit one another, so that a result
    can be printed. Whether any of it is true is a question for `verify`."""
    k, p = len(result.supports), result.n_features
    if not (k == len(result.weights) == result.variances.size and k > 0):
        raise ValueError("there is not one variance and one list of loadings per component")
    for support, weights in zip(result.supports, result.weights):
        if support.size != weights.size or (support < 0).any() or (support >= p).any():
            raise ValueError(f"a support does not name features of 0..{p - 1} with their loadings")
    if result.feature_names is not None and len(result.feature_names) != p:
        raise ValueError(f"{len(result.feature_names)} feature names for {p} features")
    if not result.certificate.bounds:
        raise ValueError("the certificate names no bound")
    sizes = result.settings.get("n_nonzero_coefs", [])
    if not isinstance(sizes, int) and not (
        isinstance(sizes, list) and all(isinstance(s, int) for s in sizes)
    ):
        raise ValueError("n_nonzero_coefs is neither an integer nor a list of them")
    screening = result.certificate.screening
    told = {"kept": int, "dropped": int, "rule": str, "support_unchanged": bool}
    told |= {"bound_holds": bool, "inside": float, "touching": float, "largest_dropped": float}
    if screening and not all(isinstance(screening.get(name), told[name]) for name in told):
        raise ValueError("the screening is incomplete")


def _texts(names: Any) -> tuple[str, ...]:
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("feature_names is no list of texts")
    return tuple(names)


def _array(value: Any, dtype: Any) -> np.ndarray:
    if isinstance(value, list) and all(type(entry) in (int, float) for entry in value):
        value = np.array(value)  # as `to_json(plain=True)` writes it
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise ValueError("an array is missing")
    if dtype is np.intp and value.size and value.dtype.kind not in "iu":
        raise ValueError("an array of features has numbers that are no integers")
    return value.astype(dtype)
