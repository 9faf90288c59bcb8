"""The cache: arrays of files that were parsed, mapped into memory the next time.

A cache entry is a folder `<size>-<key>`; the key is made of the content of the source (SHA-256) and
of how it was read, so that a source that changes gets another entry. A note per path remembers
which content the file had in which state: an unchanged file need not be read to be recognised.

An entry is written to a draft folder, flushed to the disk and renamed, so that it is complete when
it has its name. When two processes write the same entry, the first to rename wins and the other one
uses its entry. The entries together take no more than a limit: beyond it the one that was used
least recently is removed first, and what is mapped stays readable; what is larger alone is not
kept, and a warning says so. When writing fails (a full disk,
a folder that cannot be written), a warning says so and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import secrets
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...problem.parameters import size
from ..checks import Damaged
from .bytes import Source, content_of, identity

VARIABLE = "SPARCIPAL_CACHE"
SIZE_VARIABLE = "SPARCIPAL_CACHE_SIZE"
MOST = 20 << 30  # bytes that a cache takes unless SIZE_VARIABLE says otherwise
LARGE = 64 << 20  # bytes of parsed arrays that are cached by default
VERSION = 3  # of the layout of an entry and of what the readers make of a source
FRESH = 2.0  # seconds in which a file may change without a change of its time stamps
FORGOTTEN = 2 * 86400.0  # seconds after which a draft of another machine is taken for abandoned
DIGEST = "digest"  # the name of a check sum beside arrays that are stored
HEADER = 128  # bytes before the entries of a .npy file


def default_folder() -> Path:
    """Return the folder of SPARCIPAL_CACHE, or the one for caches of this system."""
    named = os.environ.get(VARIABLE, "")
    if named and named != "off":
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "sparcipal"


def most_bytes() -> int:
    """Return how many bytes the entries of a cache may take together."""
    named = os.environ.get(SIZE_VARIABLE, "")
    try:
        return size(SIZE_VARIABLE, named) if named else MOST
    except ValueError as error:
        raise ValueError(f"the environment variable {error}") from None


def cache_for(choice: Any, source: Any) -> Cache | None:
    """Return the cache that `read(cache=choice)` means for a source; None for none."""
    if choice is False or str(source) == "-" or not Path(source).is_file():
        return None
    if choice is None:
        off = os.environ.get(VARIABLE) == "off"
        return None if off else Cache(default_folder(), least=LARGE)
    if choice is True:
        return Cache(default_folder())
    if not isinstance(choice, str | os.PathLike):
        raise TypeError(f'cache must be True, False, "beside" or a folder, got {choice!r}')
    if str(choice) == "beside":
        return Cache(Path(f"{os.fspath(source)}.sparcipal"))
    if Path(choice).exists() and not Path(choice).is_dir():
        raise ValueError(f"cache={str(choice)!r} is not a folder; name one, or pass cache=False")
    return Cache(Path(choice))


class Cache:
    """A folder of entries. `least` is how many bytes of arrays are worth an entry."""

    def __init__(self, folder: Path, least: int = 0) -> None:
        self.folder = folder
        self.least = least

    def has_room(self, source: Source, nbytes: int) -> bool:
        """Return whether so many bytes of arrays are not more than all entries may take; a warning
        says so where they are."""
        most = most_bytes()
        if nbytes > most:
            warnings.warn(
                f"{source}: the parsed data take {nbytes} bytes and the cache at most {most}: they "
                f"are not kept, and are parsed again the next time; raise {SIZE_VARIABLE}, or pass "
                "cache=False",
                RuntimeWarning,
                stacklevel=2,
            )
        return nbytes <= most

    def find(self, source: Source, recipe: str) -> Entry | None:
        """Return the entry of a source as it is now; None when there is none."""
        try:
            state = os.stat(source)
            content = self._content(source, state)
        except OSError:
            return None
        if content is None:
            return None
        path = self.folder / _entry_name(state.st_size, content, recipe)
        if not path.exists():
            return None
        try:
            entry = Entry.open(path)
            with contextlib.suppress(OSError):
                os.utime(path / "entry.json")  # the time when it was used
            self._take_note(source, state, content)
            return entry
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _discard(path, error)
            return None

    def _content(self, source: Source, state: os.stat_result) -> str | None:
        """Return the SHA-256 of the file: from the note when the file is in the state noted there,
        otherwise by reading it if there is an entry of a file of its size."""
        note = _read_json(self._note_of(source))
        if note is not None and note.get("state") == list(identity(state)):
            return str(note["content"])
        if not any(self.folder.glob(f"{state.st_size}-*")):
            return None
        content = content_of(source)
        return content if identity(os.stat(source)) == identity(state) else None

    def draft(self) -> Draft | None:
        """Return a new folder to write to; None, with a warning, when there can be none."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            mark = f"part-{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
            (self.folder / mark).mkdir()
        except OSError as error:
            warn_not_cached(self.folder, error)
            return None
        return Draft(self.folder / mark)

    def keep(self, draft: Draft, source: Source, recipe: str, facts: dict[str, Any]) -> Entry:
        """Make a draft the entry of a source that was read to its end; OSError when it fails."""
        content, state = source.content, source.state
        if content is None or state is None:
            raise ValueError(f"{source} was not read to its end")
        path = self.folder / _entry_name(state.st_size, content, recipe)
        about = {"content": content, "source": _absolute(source), "recipe": recipe, **facts}
        draft.finish({**about, "created": time.time()})
        try:
            os.rename(draft.folder, path)
        except OSError:
            if not path.exists():
                raise
            draft.abandon()  # another process was first
        _flush_folder(self.folder)
        before = _read_json(self._note_of(source))
        self._take_note(source, state, content)
        if before is not None and before.get("content") not in (None, content):
            self._forget(str(before["content"]))
        self._shrink(path)
        return Entry.open(path)

    def entries(self) -> list[Entry]:
        found = []
        for path in sorted(self.folder.glob("*-*")):
            if path.is_dir() and not path.name.startswith("part-"):
                with contextlib.suppress(OSError, ValueError, KeyError):
                    found.append(Entry.open(path))
        return found

    def _shrink(self, newest: Path) -> None:
        """Remove entries until the others fit, those used least recently first."""
        found = sorted(self.entries(), key=lambda entry: entry.used)
        total, most = sum(entry.size for entry in found), most_bytes()
        for entry in found:
            if total <= most:
                break
            if entry.folder != newest:
                total -= entry.size
                shutil.rmtree(entry.folder, ignore_errors=True)

    def clear(self) -> int:
        """Remove every entry, note and unfinished folder; the bytes that were taken."""
        freed = 0
        for path in [*self.folder.glob("*-*"), self.folder / "notes"]:
            if path.is_dir():
                freed += size_of(path)
                shutil.rmtree(path, ignore_errors=True)
        return freed

    def _note_of(self, source: Source) -> Path:
        name = hashlib.sha256(_absolute(source).encode(errors="surrogateescape")).hexdigest()
        return self.folder / "notes" / f"{name[:32]}.json"

    def _take_note(self, source: Source, state: os.stat_result, content: str) -> None:
        # A file written a moment ago may change again within one tick of its clock, so its state
        # is not noted and its content is hashed the next time.
        fresh = time.time() - max(state.st_mtime, state.st_ctime) < FRESH
        note = {
            "source": _absolute(source),
            "content": content,
            "state": None if fresh else list(identity(state)),
        }
        path = self._note_of(source)
        if _read_json(path) == note:
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            _replace(path, json.dumps(note).encode())

    def _forget(self, content: str) -> None:
        """Remove the entries of a content unless a note says that another file has it."""
        notes = map(_read_json, (self.folder / "notes").glob("*.json"))
        if any(note is not None and note.get("content") == content for note in notes):
            return
        for entry in self.entries():
            if entry.facts.get("content") == content:
                shutil.rmtree(entry.folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove the drafts of processes that ended while they were writing."""
        for path in self.folder.glob("part-*"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                host, pid = path.name.split("-")[1:3]
                gone = host == _host() and not _alive(int(pid))
                if gone or time.time() - path.stat().st_mtime > FORGOTTEN:
                    shutil.rmtree(path, ignore_errors=True)


class Draft:
    """A folder that becomes an entry or is removed; always removed where it is not `lasting`."""

    def __init__(self, folder: Path, *, lasting: bool = True) -> None:
        self.folder, self.lasting = folder, lasting
        self._columns: list[Column] = []

    def column(self, name: str, dtype: Any) -> Column:
        """Return a new file of the draft, for an array that arrives in pieces."""
        column = Column(self.folder / f"{name}.npy", np.dtype(dtype))
        self._columns.append(column)
        column.start()
        return column

    def write(self, name: str, raw: bytes) -> None:
        _replace(self.folder / name, raw)

    def array(self, name: str) -> np.ndarray:
        """Return a map of a finished column."""
        return _mapped(self.folder, name)

    def finish(self, facts: dict[str, Any]) -> None:
        sizes = {path.name: path.stat().st_size for path in self.folder.iterdir()}
        facts = {"version": VERSION, "files": sizes, **facts}
        self.write("entry.json", json.dumps(facts).encode())
        _flush_folder(self.folder)

    def abandon(self) -> None:
        """Remove the folder, unless it became an entry."""
        for column in self._columns:
            column.abandon()
        shutil.rmtree(self.folder, ignore_errors=True)


class Column:
    """A .npy file that grows. It is written and not mapped, so that a full disk is an OSError and
    not a crash."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path = path
        self.dtype = dtype
        self.count = 0
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115

    def start(self) -> None:
        self._all(b" " * HEADER)

    def write(self, array: np.ndarray) -> None:
        self._all(np.ascontiguousarray(array, dtype=self.dtype).data.cast("B"))
        self.count += array.size

    def _all(self, raw: Any) -> None:
        view = memoryview(raw)
        while len(view):
            view = view[self._file.write(view) :]

    def part(self, start: int, count: int) -> np.ndarray:
        """Read back entries that were written."""
        offset = HEADER + start * self.dtype.itemsize
        found: np.ndarray = np.fromfile(self.path, self.dtype, count, offset=offset)
        return found

    def abandon(self) -> None:
        """Close the file without its header; `part` can still read it."""
        self._file.close()

    def close(self, shape: tuple[int, ...] | None = None) -> None:
        """Write the header and flush the file to the disk."""
        shape = (self.count,) if shape is None else shape
        words = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
        magic = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._all(magic + words.encode().ljust(HEADER - 11) + b"\n")
        os.fsync(self._file.fileno())
        self._file.close()

    def rename(self, name: str) -> None:
        self.path = self.path.replace(self.path.with_name(f"{name}.npy"))


@dataclass(frozen=True)
class Entry:
    """Arrays of a parsed file in a folder, and results that were computed from them.

    `store` and `load` are for results that cost a pass over the data, the products of some columns
    for instance; they are removed together with the entry.
    """

    folder: Path
    facts: dict[str, Any]

    @staticmethod
    def open(folder: Path) -> Entry:
        facts = json.loads((folder / "entry.json").read_bytes())
        if not isinstance(facts, dict) or facts.get("version") != VERSION:
            raise ValueError("written by another version")
        for name, length in facts["files"].items():
            if (folder / name).stat().st_size != length:
                raise ValueError(f"{name} is cut short")
        return Entry(folder, facts)

    def array(self, name: str) -> np.ndarray:
        """Return a read-only memory map."""
        return _mapped(self.folder, name)

    def damaged(self, error: Exception) -> Damaged:
        """Remove the entry, with a warning, and return an error to raise: it is of no use."""
        _discard(self.folder, error)
        return Damaged(f"{self.folder}: the cache entry is damaged ({error}); read the file again")

    def load(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays stored under a name; None when there are none. What is damaged is
        removed, with a warning."""
        path = self.folder / f"{name}.npz"
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            if (digest := arrays.pop(DIGEST, None)) is None:
                return None  # stored by an earlier version
            if not np.array_equal(digest, self._digest(name, arrays)):
                raise ValueError("it holds other numbers than were stored")
            return arrays
        except OSError:
            return None
        except Exception as error:  # of many classes when the file is damaged
            _discard(path, error)
            return None

    def _digest(self, name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Return a check sum of arrays, of what they are, and of this entry."""
        found = hashlib.blake2b(f"{self.folder.name}\n{name}".encode(), digest_size=16)
        for key, array in sorted(arrays.items()):
            found.update(f"\n{key} {array.dtype.str} {array.shape}\n".encode())
            found.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        return np.frombuffer(found.digest(), dtype=np.uint8)

    def store(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Store arrays under a name; when that fails a warning says so."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays, **{DIGEST: self._digest(name, arrays)})  # type: ignore[arg-type]
        try:
            _replace(self.folder / f"{name}.npz", buffer.getbuffer())
        except OSError as error:
            warn_not_cached(self.folder, error)

    @property
    def size(self) -> int:
        return size_of(self.folder)

    @property
    def used(self) -> float:
        """When it was read last, in seconds of `time.time`; 0 if it is gone."""
        try:
            return (self.folder / "entry.json").stat().st_mtime
        except OSError:
            return 0.0


def _mapped(folder: Path, name: str) -> np.ndarray:
    found: np.ndarray = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return found


def _discard(path: Path, error: Exception) -> None:
    """Remove an entry, or a file in it, that cannot be used."""
    told = f"the cache entry is damaged ({error}) and is made again"
    told = f"{path}: {told}; `sparcipal cache clear` removes all others, too"
    warnings.warn(told, RuntimeWarning, stacklevel=2)
    shutil.rmtree(path, ignore_errors=True)  # a folder
    with contextlib.suppress(OSError):
        path.unlink()


def warn_not_cached(folder: Path, error: OSError) -> None:
    warnings.warn(
        f"{folder}: the parsed data could not be kept ({error.strerror or error}); the work goes "
        f"on without. Make room, or name another folder: in {VARIABLE}, or with cache=False in "
        "TMPDIR",
        RuntimeWarning,
        stacklevel=2,
    )


def size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _entry_name(size: int, content: str, recipe: str) -> str:
    key = hashlib.sha256(f"{VERSION}\n{content}\n{recipe}".encode()).hexdigest()
    return f"{size}-{key[:32]}"


def _absolute(source: Source) -> str:
    return os.path.realpath(os.fspath(source))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _replace(path: Path, raw: Any) -> None:
    """Write a file that is complete when it has its name."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with _removed_on_error(part), open(part, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


@contextlib.contextmanager
def _removed_on_error(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, on systems that can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # os.kill would end the process there; the age of the draft decides
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, and is another user's
        pass
    return True
