"""Opening files, plain or compressed by gzip, and standard input.

Reading reports its progress, notices when the file changes meanwhile, and hashes the bytes when the
cache needs to know them. A file that is cut short or damaged is a ValueError that names it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import io
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...problem.monitor import Monitor

Path_ = str | os.PathLike[str]
BUFFER = 1 << 18  # bytes taken from the file at once
LINES = 1 << 21  # bytes of whole lines that are parsed together
TELL = 0.1  # seconds between two reports of progress
# A file that unpacks to more bytes than LARGE and to RATIO times its own size is refused: it was
# probably made to fill the memory.
LARGE, RATIO = 1 << 30, 200


def _fast_gzip() -> Any:
    """Return the module of python-isal, three times as fast as zlib, or None when it is not
    installed."""
    try:
        return importlib.import_module("isal.igzip")
    except ImportError:
        return None


def spoiled() -> tuple[type[Exception], ...]:
    """Return the exceptions that a damaged gzip file raises."""
    fast = _fast_gzip()
    own = () if fast is None else (importlib.import_module("isal.isal_zlib").error,)
    return (EOFError, zlib.error, gzip.BadGzipFile, *own)


class Source(os.PathLike[str]):
    """A path in the course of one read: where progress is reported, what the cache is, and how
    much memory there is.

    After the file was read to its end, `state` is what the file system said of it, and `content`
    the SHA-256 of its bytes when they were hashed.
    """

    def __init__(
        self,
        path: Path_,
        monitor: Monitor | None = None,
        cache: Any = None,
        memory_limit: int = 1 << 30,
        *,
        parts: Sequence[Path_] = (),
    ) -> None:
        self.path = path
        self.parts = tuple(parts)  # the files that a pattern names, for a reader of them all
        self.monitor = monitor
        self.cache = cache
        self.memory_limit = memory_limit
        self.content: str | None = None
        self.state: os.stat_result | None = None

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes of the file; 0 for standard input."""
        return 0 if str(self) == "-" else os.stat(self).st_size

    @property
    def hashed(self) -> bool:
        """Whether the bytes are hashed: the arrays may be large enough for the cache.

        They are taken to be at most four times as large as the file.
        """
        return self.cache is not None and 4 * self.size >= self.cache.least

    @property
    def room(self) -> int:
        """Bytes of numbers that may be held: half of the limit, since a fit has a copy of them."""
        return self.memory_limit // 2

    def beside(self, path: Path_) -> Source:
        """Another file that is read in the course of the same one; it has no entry of its own."""
        return Source(path, self.monitor, None, self.memory_limit)

    def of_parts(self, paths: Sequence[Path_]) -> Source:
        """Return the same source, whose files are one table for its reader."""
        return Source(self.path, self.monitor, self.cache, self.memory_limit, parts=paths)

    def was_read(self, state: os.stat_result, content: str | None) -> None:
        self.state, self.content = state, content


class Watched(io.RawIOBase):
    """A raw file that reports progress, counts the bytes read and hashes them when asked."""

    def __init__(self, raw: io.RawIOBase, source: Source) -> None:
        self._raw = raw
        self._monitor = source.monitor
        self._name = Path(source).name
        self._start = self._told = time.monotonic()
        self._done = 0
        self.before = os.fstat(raw.fileno())
        self._total = self.before.st_size if stat.S_ISREG(self.before.st_mode) else None
        self.digest = hashlib.sha256() if source.hashed else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._raw.readinto(buffer) or 0
        if self.digest is not None:
            self.digest.update(memoryview(buffer)[:count])
        self._done += count
        now = time.monotonic()
        if self._monitor is not None and now - self._told >= TELL:
            self._told = now
            self._tell(self._monitor, now - self._start)
        return count

    @property
    def done(self) -> int:
        return self._done

    def _tell(self, monitor: Monitor, seconds: float) -> None:
        if self._total:
            left = seconds * (self._total - self._done) / self._done if self._done else None
            message = f"{self._name}: {size_words(self._done)} of {size_words(self._total)}"
            message += "" if left is None else f", {time_words(left)} left"
        else:
            message = f"{self._name}: {size_words(self._done)}"
        monitor.update("read", message=message, read=(self._done, self._total))
        if monitor.stopped == "user":
            raise KeyboardInterrupt("reading was stopped by the callback")

    def changed(self, path: Path_) -> bool:
        """Return whether the file is another one than when it was opened; a pipe never is."""
        if self._total is None:
            return False
        try:
            now = [os.fstat(self._raw.fileno()), os.stat(path)]
        except OSError:
            return True
        return any(identity(found) != identity(self.before) for found in now)


def identity(state: os.stat_result) -> tuple[int, ...]:
    """Return numbers that differ after the file was written to or replaced by another one."""
    return (
        state.st_dev,
        state.st_ino,
        state.st_size,
        state.st_mtime_ns,
        0 if sys.platform == "win32" else state.st_ctime_ns,
    )


@contextlib.contextmanager
def open_bytes(source: Path_) -> Iterator[BinaryIO]:
    """Yield the bytes of a file, decompressed when they are gzipped; "-" is standard input.

    A gzip file that is damaged and a file that changes meanwhile are ValueErrors that name it.
    """
    if str(source) == "-":
        raw: Any = sys.stdin.buffer
        buffered = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        with _damage_named("standard input"):
            yield decompressed(buffered)
        return
    whole = source if isinstance(source, Source) else Source(source)
    with open(whole, "rb", buffering=0) as file:
        watched = Watched(file, whole)
        try:
            with _damage_named(source):
                buffered = io.BufferedReader(watched, BUFFER)
                yield decompressed(buffered)
                if watched.digest is not None:
                    # the bytes after the last gzip member belong to the content too
                    while buffered.read(BUFFER):
                        pass
        except ValueError as error:
            if watched.changed(whole):
                raise _changed(source) from error
            raise
        if watched.changed(whole):
            raise _changed(source)
        content = None if watched.digest is None else watched.digest.hexdigest()
        whole.was_read(watched.before, content)


def decompressed(buffered: Any) -> BinaryIO:
    """Return the stream itself, or its unpacked content when it starts like a gzip file."""
    if buffered.peek(2)[:2] != b"\x1f\x8b":
        return buffered  # type: ignore[no-any-return]
    fast = _fast_gzip()
    if fast is None:
        inner: Any = gzip.GzipFile(fileobj=buffered)
    else:
        inner = fast._GzipReader(buffered, BUFFER)
    return io.BufferedReader(_Unpacked(inner, buffered.raw), BUFFER)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file; unpacking to far more than the file has is a ValueError."""

    def __init__(self, inner: Any, packed: Any) -> None:
        self._inner, self._packed = inner, packed
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._inner.readinto(buffer) or 0)
        self._count += count
        if self._count > LARGE:
            packed = getattr(self._packed, "done", self._count)
            if self._count > RATIO * packed:
                raise ValueError(
                    f"the gzip file unpacks to more than {RATIO} times its size, over "
                    f"{size_words(self._count)}; unpack it yourself if you trust it"
                )
        return count


@contextlib.contextmanager
def _damage_named(source: Path_) -> Iterator[None]:
    try:
        yield
    except spoiled() as error:
        raise damaged(source, error) from error


def damaged(source: Path_, error: Exception, where: str = "") -> ValueError:
    return ValueError(
        f"{source}: the gzip file is damaged or cut short{where} ({error}); fetch it again"
    )


def _changed(source: Path_) -> ValueError:
    return ValueError(
        f"{source}: the file changed while it was read; read it again when it is finished"
    )


def content_of(path: Path_) -> str:
    """Return the SHA-256 of a file, as `Source.content` has it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_words(count: float) -> str:
    if count < 999.5:
        return f"{count:.0f} bytes"
    power = 1 + (count >= 999.5e3) + (count >= 999.5e6)
    size = count / 1000**power
    return f"{size:.1f} {'?kMG'[power]}B" if size < 9.95 else f"{size:.0f} {'?kMG'[power]}B"


def time_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream, about LINES bytes of them at a time."""
    rest = b""
    while text := stream.read(LINES):
        end = text.rfind(b"\n") + 1
        if not end:
            rest += text
            continue
        yield rest + text[:end]
        rest = text[end:]
    if rest:
        yield rest


def decoded_lines(source: Path_, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield line numbers (from 1) and lines without their ends."""
    with open_bytes(source) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, decode(line, source, encoding, number).rstrip("\r\n")


def decode(raw: bytes, source: Path_, encoding: str, line: int | None = None) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"{source}, line {line}" if line is not None else str(source)
        raise ValueError(
            f"{where}: not {encoding} text (byte {error.start}); name its encoding, for instance "
            'encoding="latin-1"'
        ) from error


def read_names(source: Path_) -> tuple[str, ...]:
    """Return the names in a file, one per line; empty lines at the end are no names."""
    names = [line for _, line in decoded_lines(source)]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def stem_of(source: Path_) -> tuple[str, str]:
    """Return the lower-case file name without .gz, and its extension."""
    name = Path(source).name.lower().removesuffix(".gz")
    return name, Path(name).suffix
