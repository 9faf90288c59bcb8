"""The archive: the best value and bound of every instance, and results that prove them.

`library.jsonl` has a line for every instance. What it says is what the result in
`results/<name>.json.xz` says; the file holds the proof where that is small enough, and the
components otherwise. A file that is larger than `PART` goes on in `<name>.json.xz.2` and so on.
Multipliers of a proof are kept with as few bits as still prove the same bound; where that is still
too large, with fewer bits for a bound that is larger by nearly a quarter of the gap. Nothing here
is believed: `check` asks `sparcipal.verify`, and a bound whose proof is not there counts as not
rechecked.
"""

from __future__ import annotations

import json
import lzma
import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.library.instances import INSTANCES, Instance, given
from benchmarks.library.published import PUBLISHED
from sparcipal import Result, verify
from sparcipal.checker import Verification

FOLDER = Path(__file__).parent
# Compressed proofs up to this size are kept, in bytes, in files of at most this size.
LARGEST, PART = 3_000_000, 900_000
LONGEST = 100_000_000  # of a result that is not compressed
# Multipliers of proofs beyond this size, in bytes, are tried with so many bits instead of 24.
SMALL, BITS = 50_000, (10, 11, 12, 14, 16, 18)
# Multipliers of proofs that are too large otherwise: the bound is raised by this share of the gap,
# u has so many bits below the largest, r so many after the point.
RAISED, COARSE = 0.24, ((9, 6), (10, 7), (12, 8))
# Values and bounds count as improved beyond this.
RELATIVE = 1e-9
# A bound that comes with its proof may be larger than one whose proof is not there: by this share
# of the gap, or by this share of the value.
PROOF_IS_WORTH = (0.25, 1e-6)
# The instances whose proof is too large to be kept, or not made yet. No other may lack one.
WITHOUT_PROOF = frozenset(
    [
        "isolet-5x40",
        "colon-5x40",
        "kos-5x40",
        "kos-8x15",
        "nips-8x10",
        "nips-8x15",
        "leukemia-5x40",
        "pbmc-1x150",
        "20news-5x10",
        "20news-5x40",
    ]
)
# The gap up to which an instance is optimal: the tolerance of the certificates.
OPTIMAL = 1e-6
# Published optima may be above a bound by this much of it, where the bound is proved: solvers stop
# within a tolerance.
PUBLISHED_WITHIN = 1e-5
# Arrays stand in the text as base64 of four or eight bytes: a pattern of 16 or 32 letters.
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 4, "pb": 4}]
ASKED = ("supports", "objective", "uncorrelated", "nonnegative", "center", "scale")


class NotTaken(ValueError):
    """A result that the library does not take, and why."""


class NotBetter(NotTaken):
    """A result that is proved, and improves on nothing."""


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

    @property
    def optimal(self) -> bool:
        return self.gap <= OPTIMAL

    def require_credible(self) -> None:
        """Raise NotTaken for what no file has to be read to refuse.

        A bound without a proof is listed only for the instances that are known to lack one, and
        no bound is below a value that others have reached.
        """
        if not self.proof and self.name not in WITHOUT_PROOF:
            raise NotTaken(
                f"{self.name}: no proof, and it is none of those that may lack one "
                "(WITHOUT_PROOF in benchmarks/library/archive.py)"
            )
        highest = self.bound * (1 + (PUBLISHED_WITHIN if self.proof else 0.0))
        for row in PUBLISHED:
            if row.instance == self.name and row.least > highest:
                raise NotTaken(
                    f"{self.name}: the bound {self.bound!r} is below {row.value}, which "
                    f"{row.author} have reached ({row.method})"
                )

    @staticmethod
    def of_line(line: str) -> Entry:
        """The entry that a line of the list states; NotTaken says why it is none."""
        try:
            parts = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise NotTaken(f"no JSON: {error}") from error
        kinds = {"value": float, "bound": float, "proof": bool, "supports": list}
        for field in fields(Entry):
            kind = kinds.get(field.name, str)
            if not isinstance(parts, dict) or type(parts.get(field.name)) is not kind:
                raise NotTaken(f"{_name_in(parts)}: no {field.name} of type {kind.__name__}")
        if len(parts) > len(fields(Entry)):
            raise NotTaken(
                f"{_name_in(parts)}: more than {', '.join(kinds)}, name, proved_by, made"
            )
        entry = Entry(**parts)
        if entry.name not in INSTANCES:
            raise NotTaken(f"{entry.name}: no such instance")
        if not 0 < entry.value <= entry.bound or not math.isfinite(entry.bound):
            raise NotTaken(
                f"{entry.name}: a value {entry.value!r} and a bound {entry.bound!r}, not "
                "0 < value <= bound < infinity"
            )
        if json.dumps(parts) != line:
            raise NotTaken(f"{entry.name}: not written as `take` writes it, or a name stands twice")
        return entry


def _name_in(parts: Any) -> str:
    return str(parts.get("name", "a line")) if isinstance(parts, dict) else "a line"


@dataclass(frozen=True)
class Archive:
    """The folder of a library: its list and its results."""

    folder: Path = FOLDER

    def read(self) -> tuple[dict[str, Entry], list[str]]:
        """The entries of the list, and what is wrong with its lines."""
        path = self.folder / "library.jsonl"
        content = path.read_bytes() if path.exists() else b""
        found: dict[str, Entry] = {}
        faults = []
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            try:
                entry = Entry.of_line(line)
                if entry.name in found:
                    raise NotTaken(f"{entry.name}: listed twice")
                found[entry.name] = entry
            except NotTaken as fault:
                faults.append(f"line {number}: {fault}")
        return found, faults

    def entries(self) -> dict[str, Entry]:
        """The entries of a list without a wrong line."""
        found, faults = self.read()
        if faults:
            raise NotTaken(f"{self.folder / 'library.jsonl'}, {faults[0]}")
        return found

    def file(self, name: str) -> Path:
        return self.folder / "results" / f"{name}.json.xz"

    def parts(self, name: str) -> list[Path]:
        """The files of a result, in order: the first, and those that go on from it."""
        first = self.file(name)
        further = takewhile(Path.exists, (first.with_name(f"{first.name}.{n}") for n in count(2)))
        return [first, *further]

    def strays(self, names: Iterable[str]) -> list[str]:
        """Files among the results that belong to none of these instances."""
        known = {part for name in names for part in self.parts(name)}
        folder = self.folder / "results"
        files = sorted(folder.rglob("*")) if folder.exists() else []
        return [str(file.relative_to(folder)) for file in files if file not in known]

    def result(self, name: str) -> Result:
        """The stored result; NotTaken when the file is absent, broken, or holds none."""
        try:
            content = b"".join(part.read_bytes() for part in self.parts(name))
            unpack = lzma.LZMADecompressor()
            text = unpack.decompress(content, max_length=LONGEST)
            if not unpack.eof or unpack.unused_data:
                raise ValueError(f"not one stream of at most {LONGEST:,} bytes")
            return Result.from_json(text.decode())
        except (OSError, ValueError, lzma.LZMAError) as error:
            raise NotTaken(f"{name}: no result in {self.file(name)}: {error}") from error

    def write(self, entry: Entry, content: bytes) -> None:
        first = self.file(entry.name)
        first.parent.mkdir(parents=True, exist_ok=True)
        for old in self.parts(entry.name)[1:]:
            old.unlink()
        for number, start in enumerate(range(0, len(content), PART), start=1):
            part = first if number == 1 else first.with_name(f"{first.name}.{number}")
            part.write_bytes(content[start : start + PART])
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


def check(archive: Archive, instance: Instance, entry: Entry) -> Verification:
    """Recheck an entry: true if its bound was proved again. NotTaken says what does not hold.

    The list has to say what the stored result says, to the last bit, and the checker has to accept
    the result. The verdict on an entry without a proof is "not proved".
    """
    entry.require_credible()
    result = archive.result(instance.name)
    for said, own in asdict(entry).items():
        stored = _of_result(result).get(said, own)
        if own != stored:
            raise NotTaken(f"{instance.name}: the list has {said} {own!r}, the result {stored!r}")
    effort = re.escape(made_with(result)) + r"(, [\d.e+-]+ CPU s)?"
    if not re.fullmatch(f"sent in|{effort}", entry.made):
        raise NotTaken(f"{instance.name}: made is {entry.made!r}, the result {made_with(result)}")
    verdict = recheck(instance, result)
    if entry.proof != bool(verdict):
        found = "not there" if entry.proof else "there"
        raise NotTaken(
            f"{instance.name}: the list has proof {entry.proof}, it is {found}: {verdict.reason}"
        )
    return verdict


def check_beside(instance: Instance, entry: Entry, file: Path) -> bool:
    """Whether a saved result, with its proof, proves the bound of an entry once more."""
    if not file.exists():
        return False
    result = loaded(file)
    if result.bound > entry.bound * (1 + RELATIVE) or not recheck(instance, result):
        raise NotTaken(f"{instance.name}: {file} does not prove the bound {entry.bound!r}")
    return True


def loaded(file: Path) -> Result:
    """A saved result; NotTaken when the file is absent or holds none."""
    try:
        return Result.load(file)
    except (OSError, ValueError) as error:
        raise NotTaken(f"no result in {file}: {error}") from error


def _of_result(result: Result) -> dict[str, Any]:
    """What an entry says of its result."""
    return {
        "value": result.value,
        "bound": result.bound,
        "proved_by": result.certificate.proved_by,
        "supports": [support.tolist() for support in result.supports],
    }


def made_with(result: Result) -> str:
    """The effort of a run, as `made` begins in the list."""
    return f"certify={result.settings.get('certify')!r}"


def take(archive: Archive, instance: Instance, result: Result, made: str) -> str:
    """Keep a result that improves on what is known; NotTaken says why another is not kept.

    One result has to have both the larger value and the smaller bound: a run that starts from the
    known components (`init=`) has.
    """
    verdict = recheck(instance, result)
    if not verdict:
        raise NotTaken(f"{instance.name}: not proved: {verdict.reason}")
    result, content = _packed(instance, result)
    proof = len(content) <= LARGEST
    known = archive.entries().get(instance.name)
    if known is not None:
        _improves(known, verdict.value, result.bound, proof)
    if not proof:
        content = _compressed(result.to_json(proof=False))
    entry = Entry(name=instance.name, made=made, proof=proof, **_of_result(result))
    entry.require_credible()
    archive.write(entry, content)
    return f"value {entry.value:.9g}, bound {entry.bound:.9g}, {len(content):,} bytes"


def _improves(known: Entry, value: float, bound: float, proof: bool) -> None:
    """Raise NotTaken unless a value, a bound or the presence of a proof is better, none worse."""
    better = value > known.value * (1 + RELATIVE)
    tighter = bound < known.bound * (1 - RELATIVE)
    stored = proof and not known.proof
    if not (better or tighter or stored):
        raise NotBetter(
            f"{known.name}: value {value!r} and bound {bound!r} improve on neither "
            f"{known.value!r} nor {known.bound!r}"
        )
    share, least = PROOF_IS_WORTH
    allowed = max(share * known.gap, least) if stored else RELATIVE
    loose = bound > known.bound + allowed * known.value
    if value < known.value * (1 - RELATIVE) or loose:
        raise NotTaken(
            f"{known.name}: value {value!r} or bound {bound!r} is worse than what is known, "
            f"{known.value!r} and {known.bound!r}; start from the known components (init=), so "
            "that one result has both"
        )


def _packed(instance: Instance, result: Result) -> tuple[Result, bytes]:
    """The result with its best bound only, in as few bits as prove that bound, compressed."""
    best = min(result.certificate.bounds, key=lambda bound: bound.value)

    def slim(data: Any, value: float) -> Result:
        bounds = (replace(best, data=data, value=value),)
        return replace(result, certificate=replace(result.certificate, bounds=bounds, bound=value))

    content = _compressed(slim(best.data, best.value).to_json())
    if len(content) <= SMALL:
        return result, content
    for bits in BITS:
        shorter = slim(_rounded(best.data, bits), best.value)
        if _proved(instance, shorter):
            content = min(_compressed(shorter.to_json()), content, key=len)
            break
    if len(content) <= LARGEST:
        return result, content
    more = RAISED * (best.value - result.value)
    raised = _raised(best.data, more / result.certificate.unit / instance.k)
    for of_u, of_r in COARSE:
        coarse = slim(_coarse(raised, of_u, of_r), best.value + more * (1 + RELATIVE))
        if _proved(instance, coarse):
            short = _compressed(coarse.to_json())
            return (coarse, short) if len(short) <= LARGEST else (result, content)
    return result, content


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


def _raised(part: Any, more: float) -> Any:
    """A part of a proof in which every tree of one component proves a larger bound."""
    if isinstance(part, list | tuple):
        return type(part)(_raised(entry, more) for entry in part)
    if not isinstance(part, dict):
        return part
    if part.get("step") == "problem":
        return {**part, "bound": part["bound"] + more}
    return {key: _raised(entry, more) for key, entry in part.items()}


def _coarse(part: Any, of_u: int, of_r: int) -> Any:
    """A part of a proof with the multipliers u and r of its splits as multiples of a unit."""
    if isinstance(part, list | tuple):
        return type(part)(_coarse(entry, of_u, of_r) for entry in part)
    if not isinstance(part, dict):
        return part
    shorter = {}
    for key, entry in part.items():
        if key in ("u", "r") and isinstance(entry, np.ndarray):
            largest = float(np.abs(entry).max(initial=0.0)) if key == "u" else 1.0
            unit = np.ldexp(1.0, math.frexp(largest)[1] - of_u) if key == "u" else 2.0**-of_r
            shorter[key] = (np.round(entry / unit) * unit).astype(entry.dtype)
        else:
            shorter[key] = entry if key == "touch" else _coarse(entry, of_u, of_r)
    return shorter


def _with_bits(numbers: np.ndarray, bits: int) -> np.ndarray:
    mantissas, exponents = np.frexp(numbers)
    shorter = np.ldexp(np.round(np.ldexp(mantissas, bits)), exponents - bits)
    return shorter.astype(numbers.dtype)


def _compressed(text: str) -> bytes:
    return lzma.compress(text.encode(), filters=XZ)


def chosen(names: list[str]) -> list[Instance]:
    """The named instances, all if none is named."""
    unknown = [name for name in names if name not in INSTANCES]
    if unknown:
        raise SystemExit(f"no instance called {', '.join(unknown)}; see library.jsonl")
    return [instance for name, instance in INSTANCES.items() if not names or name in names]
