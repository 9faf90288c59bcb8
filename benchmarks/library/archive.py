"""The archive: the best value and bound of every instance, and results that prove them.

`library.jsonl` has a line for every instance. Its value is that of the result in
`results/<name>.json.xz`, its bound too; the file holds the proof where that is small enough, and
the components otherwise. Multipliers of a proof are kept with as few bits as still prove the same
bound. Nothing here is believed: `check` asks `sparcipal.verify`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.library.instances import INSTANCES, Instance, given
from sparcipal import Result, verify
from sparcipal.checker import Verification

FOLDER = Path(__file__).parent
# Compressed proofs up to this size are kept, in bytes.
LARGEST = 900_000
# Multipliers of proofs beyond this size, in bytes, are tried with so many bits instead of 24.
SMALL, BITS = 50_000, (10, 11, 12, 14, 16, 18)
# Values and bounds count as improved beyond this.
RELATIVE = 1e-9
# A bound that comes with its proof may be larger by this than one whose proof is not there.
PROOF_IS_WORTH = 1e-5
ASKED = ("supports", "objective", "uncorrelated", "nonnegative", "center", "scale")


class NotTaken(ValueError):
    """A result that the library does not take, and why."""


@dataclass(frozen=True)
class Entry:
    """What is known of an instance."""

    name: str
    value: float
    bound: float
    proved_by: str
    proof: bool
    made: str
    supports: list[list[int]]

    @property
    def gap(self) -> float:
        return self.bound / self.value - 1.0


@dataclass(frozen=True)
class Archive:
    """The folder of a library: its list and its results."""

    folder: Path = FOLDER

    def entries(self) -> dict[str, Entry]:
        path = self.folder / "library.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = [Entry(**json.loads(line)) for line in lines]
        return {entry.name: entry for entry in found}

    def file(self, name: str) -> Path:
        return self.folder / "results" / f"{name}.json.xz"

    def result(self, name: str) -> Result:
        return Result.from_json(lzma.decompress(self.file(name).read_bytes()).decode())

    def write(self, entry: Entry, content: bytes) -> None:
        self.file(entry.name).parent.mkdir(parents=True, exist_ok=True)
        self.file(entry.name).write_bytes(content)
        entries = {**self.entries(), entry.name: entry}
        ordered = [entries[name] for name in INSTANCES if name in entries]
        text = "".join(json.dumps(asdict(entry)) + "\n" for entry in ordered)
        (self.folder / "library.jsonl").write_text(text, encoding="utf-8")


def recheck(instance: Instance, result: Result) -> Verification:
    """The verdict of the checker, once the result answers the question of the instance."""
    asked = instance.question()
    settings = result.settings
    usual: dict[str, Any] = {
        "supports": "disjoint",
        "objective": "sum",
        "uncorrelated": False,
        "nonnegative": instance.nonnegative,
        "center": asked.get("center", "covariance" not in asked),
        "scale": asked.get("scale", False),
    }
    for name in ASKED:
        if settings.get(name) != usual[name]:
            raise NotTaken(f"{instance.name} has {name}={usual[name]}, not {settings.get(name)!r}")
    sizes = settings.get("n_nonzero_coefs")
    if not isinstance(sizes, list | tuple) or list(sizes) != [instance.s] * instance.k:
        raise NotTaken(f"{instance.name} asks for {instance.k} x {instance.s}, not {sizes!r}")
    unusual = [name for name in ("include", "exclude", "missing") if settings.get(name)]
    if unusual or settings.get("sample_weight"):
        raise NotTaken(f"{instance.name} has no {', '.join(unusual) or 'sample weights'}")
    data = {
        key: value
        for key, value in given(instance.source.name).items()
        if key in ("X", "covariance")
    }
    verdict = verify(result, **data)
    if verdict.verdict == "refused":
        raise NotTaken(f"{instance.name}: refused by verify: {verdict.reason}")
    return verdict


def check(archive: Archive, instance: Instance, entry: Entry) -> str:
    """Recheck an entry: what holds, in words. NotTaken says what does not."""
    result = archive.result(instance.name)
    verdict = recheck(instance, result)
    if [support.tolist() for support in result.supports] != entry.supports:
        raise NotTaken(f"{instance.name}: the list has other supports than the result")
    if not verdict.value >= entry.value * (1 - RELATIVE):
        raise NotTaken(f"{instance.name}: the list says {entry.value!r}, it is {verdict.value!r}")
    if not entry.proof:
        return "value holds; proof not stored"
    if not (verdict and verdict.bound <= entry.bound * (1 + RELATIVE)):
        raise NotTaken(
            f"{instance.name}: the bound {entry.bound!r} is not proved: {verdict.reason}"
        )
    return "value and bound hold"


def take(archive: Archive, instance: Instance, result: Result, made: str) -> str:
    """Keep a result that improves on what is known; NotTaken says why another is not kept.

    One result has to have both the larger value and the smaller bound: a run that starts from the
    known components (`init=`) has.
    """
    verdict = recheck(instance, result)
    if not verdict:
        raise NotTaken(f"{instance.name}: not proved: {verdict.reason}")
    content = _packed(instance, result)
    proof = len(content) <= LARGEST
    known = archive.entries().get(instance.name)
    if known is not None:
        _improves(known, verdict.value, result.bound, proof)
    if not proof:
        content = _compressed(result.to_json(proof=False))
    supports = [support.tolist() for support in result.supports]
    name = result.certificate.proved_by
    entry = Entry(instance.name, verdict.value, result.bound, name, proof, made, supports)
    archive.write(entry, content)
    return f"value {entry.value:.9g}, bound {entry.bound:.9g}, {len(content):,} bytes"


def _improves(known: Entry, value: float, bound: float, proof: bool) -> None:
    """Raise NotTaken unless a value, a bound or the presence of a proof is better, none worse."""
    better = value > known.value * (1 + RELATIVE)
    tighter = bound < known.bound * (1 - RELATIVE)
    stored = proof and not known.proof
    if not (better or tighter or stored):
        raise NotTaken(
            f"{known.name}: value {value:.9g} and bound {bound:.9g} improve on neither "
            f"{known.value:.9g} nor {known.bound:.9g}"
        )
    loose = bound > known.bound * (1 + (PROOF_IS_WORTH if stored else RELATIVE))
    if value < known.value * (1 - RELATIVE) or loose:
        raise NotTaken(
            f"{known.name}: value {value:.9g} or bound {bound:.9g} is worse than what is known, "
            f"{known.value:.9g} and {known.bound:.9g}; start from the known components (init=), so "
            "that one result has both"
        )


def _packed(instance: Instance, result: Result) -> bytes:
    """The result with its best bound only, in as few bits as prove that bound, compressed."""
    best = min(result.certificate.bounds, key=lambda bound: bound.value)

    def slim(data: Any) -> Result:
        bounds = (replace(best, data=data),)
        return replace(result, certificate=replace(result.certificate, bounds=bounds))

    content = _compressed(slim(best.data).to_json())
    if len(content) <= SMALL:
        return content
    for bits in BITS:
        shorter = slim(_rounded(best.data, bits))
        if _proved(instance, shorter):
            return min(_compressed(shorter.to_json()), content, key=len)
    return content


def _proved(instance: Instance, result: Result) -> bool:
    try:
        return bool(recheck(instance, result))
    except NotTaken:
        return False


def _rounded(part: Any, bits: int) -> Any:
    """A part of a proof with the multipliers u and r of its splits in fewer bits.

    What else there is depends on their last bits: pads (`touch`) are made from them.
    """
    if isinstance(part, list | tuple):
        return type(part)(_rounded(entry, bits) for entry in part)
    if not isinstance(part, dict):
        return part
    shorter = {}
    for key, entry in part.items():
        if key in ("u", "r") and isinstance(entry, np.ndarray):
            shorter[key] = _with_bits(entry, bits)
        else:
            shorter[key] = entry if key == "touch" else _rounded(entry, bits)
    return shorter


def _with_bits(numbers: np.ndarray, bits: int) -> np.ndarray:
    mantissas, exponents = np.frexp(numbers)
    shorter = np.ldexp(np.round(np.ldexp(mantissas, bits)), exponents - bits)
    return shorter.astype(numbers.dtype)


def _compressed(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def present(names: list[str]) -> Iterator[Instance]:
    """The named instances whose data are there, all if none is named."""
    unknown = [name for name in names if name not in INSTANCES]
    if unknown:
        raise SystemExit(f"no instance called {', '.join(unknown)}; see library.jsonl")
    for instance in INSTANCES.values():
        if (not names or instance.name in names) and not instance.source.absent:
            yield instance
