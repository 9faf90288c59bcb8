"""Result, Certificate, Status: what a run says, frozen, printable, and the same after a JSON round
trip."""

from __future__ import annotations

import base64
import enum
import json
import math
import os
import secrets
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1  # of the JSON document; a reader refuses any other


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
    data."""

    name: str
    value: float
    data: dict[str, Any] = field(default_factory=dict, repr=False)


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
        Features that were proved unnecessary, or that carry no variance.
    message : str
        What a user could do about the gap.
    guarantees : dict
        What the method's paper promises in advance, by name; fractions of the optimum.
    unit : float
        A power of two: the proofs speak of the covariance divided by it.
    screening : dict
        Empty unless features were dropped by their variance before the search. Then: how many were
        "kept" and "dropped", the "largest_dropped" variance, the "rule" of the proof, the bound
        "inside" the kept features, the bound of everything "touching" a dropped one, and two
        claims: "support_unchanged" (no optimum uses a dropped feature) and "bound_holds" (what
        bounds the kept features bounds all).
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
        Variance explained by each component (adjusted for those before it when supports overlap).
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

    def names(self, component: int) -> list[str]:
        """The feature names of one component, the strongest first."""
        support, weights = self.supports[component], self.weights[component]
        order = np.argsort(-np.abs(weights), kind="stable")
        return [self.feature_name(int(support[i])) for i in order]

    def feature_name(self, index: int) -> str:
        return self.feature_names[index] if self.feature_names is not None else f"x{index}"

    def table(self) -> Any:
        """Components, features, weights and variances as a table that prints."""
        from ..report.text import ComponentTable

        return ComponentTable(self)

    def __repr__(self) -> str:
        return (
            f"<Result: {len(self.supports)} component(s), value {self.value:.6g}, "
            f"bound {self.bound:.6g}, gap {100 * self.gap:.3g} %, {self.status.value}>"
        )

    def __str__(self) -> str:
        from ..report.text import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        from ..report.html import result_html

        return result_html(self)

    def to_json(self, *, proof: bool = True) -> str:
        """The result as a JSON document. Without `proof`, the claim only: it cannot be
        rechecked."""
        return json.dumps(_encode(self if proof else _claim(self)), allow_nan=True)

    @staticmethod
    def from_json(text: str) -> Result:
        """Inverse of `to_json`; ValueError when the document is not a result."""
        return _decode_result(text)

    def save(self, path: str | os.PathLike[str], *, proof: bool = True) -> None:
        """Write the claim to `path` and, when asked, the proof to `<path>.proof` beside it.

        Each file is replaced in one step: a reader sees the old one or the new one, and never a
        proof of another claim.
        """
        target = Path(path)
        beside = _proof_path(target)
        texts = {target: self.to_json(proof=False)} | ({beside: self.to_json()} if proof else {})
        for file in texts:
            _refuse_special(file)
        ready: dict[Path, Path] = {}
        try:
            for file, text in texts.items():
                ready[file] = _written_beside(file, text)
            beside.unlink(missing_ok=True)
            for file in texts:
                os.replace(ready.pop(file), file)
        finally:
            for temporary in ready.values():
                temporary.unlink(missing_ok=True)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Result:
        """Read a saved result, with its proof when that lies beside it."""
        target = Path(path)
        claim = _read_from(target)
        beside = _proof_path(target)
        if not beside.exists():
            return claim
        full = _read_from(beside)
        if full.to_json(proof=False) != claim.to_json(proof=False):
            raise ValueError(
                f"{beside} belongs to another result than {target}; remove it, or save the result "
                "again"
            )
        return full


def write_atomically(target: Path, text: str) -> None:
    """Write beside the target, then rename: never half a file under the target's name."""
    _refuse_special(target)
    temporary = _written_beside(target, text)
    try:
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_special(target: Path) -> None:
    """A rename would put a file in the place of a device or a pipe; folders the system refuses."""
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ValueError(f"{target} is a device or pipe; name a regular file")


def _written_beside(target: Path, text: str) -> Path:
    """A file in the target's folder that is whole and on the disk; none if that fails."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        # Opened like any file, so that it gets the permissions the user's umask leaves.
        with open(temporary, "x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _read_from(path: Path) -> Result:
    text = _text_of(path)
    try:
        return Result.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not a sparcipal result: {path} holds no text (byte {error.start} is not UTF-8); name "
            "the .json file that a result was saved to"
        ) from error


def _proof_path(target: Path) -> Path:
    return target.with_name(target.name + ".proof")


def _claim(result: Result) -> Result:
    bare = tuple(Bound(b.name, b.value) for b in result.certificate.bounds)
    return replace(result, certificate=replace(result.certificate, bounds=bare))


# --- JSON: dataclasses by field, arrays as base64 of their little-endian bytes ---


def _encode(value: Any) -> Any:
    if isinstance(value, Result):
        return {
            "sparcipal": FORMAT,
            **{f.name: _encode(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, Certificate | Bound):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data = base64.b64encode(array.tobytes()).decode("ascii")
        return {"$array": data, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, dict):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


_DTYPES = {"<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8", "|b1"}


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if "$array" not in value:
            return {key: _decode(item) for key, item in value.items()}
        if value.get("dtype") not in _DTYPES:
            raise ValueError(f"array of unknown dtype {value.get('dtype')!r}")
        raw = base64.b64decode(value["$array"], validate=True)
        array = np.frombuffer(raw, dtype=value["dtype"]).reshape([int(n) for n in value["shape"]])
        return array.astype(array.dtype.newbyteorder("="))
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value


def _decode_result(text: str) -> Result:
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or "sparcipal" not in document:
            raise ValueError("the document has no 'sparcipal' entry")
        if document["sparcipal"] != FORMAT:
            raise ValueError(
                f"format {document['sparcipal']!r} is not the format {FORMAT} of this version"
            )
        parts = _decode(document)
        del parts["sparcipal"]
        certificate = parts.pop("certificate")
        bounds = tuple(Bound(**b) for b in certificate.pop("bounds"))
        status = Status(certificate.pop("status"))
        names = parts.pop("feature_names")
        result = Result(
            certificate=Certificate(status=status, bounds=bounds, **certificate),
            feature_names=None if names is None else tuple(str(n) for n in names),
            supports=tuple(_array(a, np.intp) for a in parts.pop("supports")),
            weights=tuple(_array(a, np.float64) for a in parts.pop("weights")),
            variances=_array(parts.pop("variances"), np.float64),
            **parts,
        )
        _check_types(result)
    except RecursionError as error:
        raise ValueError("not a sparcipal result: nested too deeply") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a sparcipal result: {error}") from error
    return result


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
}


def _check_types(result: Result) -> None:
    """Everything that prints or computes may rely on these."""
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
    if not all(isinstance(x, float | int) for x in result.certificate.guarantees.values()):
        raise ValueError("a guarantee is no number")


def _array(value: Any, dtype: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise ValueError("an array is missing")
    return value.astype(dtype)
