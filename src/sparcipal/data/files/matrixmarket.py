"""Matrix Market files, parsed by SciPy, and counts in large ones as those of bags of words.

SciPy takes the numbers it expects and skips whatever stands behind them on the line, so the bytes
are checked here on their way to it.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .bagofwords import LARGEST, PAD, words_at
from .bytes import Path_, open_bytes, whole_lines
from .reader import NotInBlocks, Parsed, Reader

BLOCK = 1 << 18  # bytes checked together
Triples = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]
SPACE, DIGIT, SIGN, DOT, EXPONENT, OTHER = range(6)
# Which kinds of byte may follow a kind in a list of numbers.
_AFTER = {
    SPACE: (SPACE, DIGIT, SIGN, DOT),
    DIGIT: (SPACE, DIGIT, DOT, EXPONENT),
    SIGN: (DIGIT, DOT),
    DOT: (SPACE, DIGIT, EXPONENT),
    EXPONENT: (DIGIT, SIGN),
}
_KINDS = np.full(256, OTHER, dtype=np.uint8)
for _kind, _bytes in ((SPACE, b" \t\r\n"), (DIGIT, b"0123456789"), (SIGN, b"+-"), (DOT, b".")):
    _KINDS[list(_bytes)] = _kind
_KINDS[list(b"eE")] = EXPONENT
_ALLOWED = np.zeros(6 * 8, dtype=bool)
for _kind, _kinds in _AFTER.items():
    _ALLOWED[[8 * _kind + _next for _next in _kinds]] = True


def read_matrixmarket(source: Path_, names: Any, *, transpose: bool = False) -> Parsed:
    """Rows are samples; `transpose` when they are features, as single-cell tools write them."""
    with open_bytes(source) as stream:
        try:
            matrix = parse_matrixmarket(stream)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{source}: not a Matrix Market file: {error}") from error
    matrix = matrix.T if transpose else matrix
    # Converted here, where a size that does not fit into memory is reported with the file.
    return Parsed(sp.csr_array(matrix) if sp.issparse(matrix) else matrix)


def parse_matrixmarket(stream: Any) -> Any:
    """Parse a stream to an array, or to a matrix of coordinates when the file is sparse."""
    from scipy.io import mmread

    # From SciPy 1.15 on mmread has `spmatrix`, and from 1.18 on it warns when that is left out.
    asked = "spmatrix" in inspect.signature(mmread).parameters
    numbers = _Numbers(stream)
    matrix = mmread(numbers, **({"spmatrix": False} if asked else {}))
    numbers.finish()
    return matrix


def matrixmarket_blocks(source: Path_, names: Any, *, transpose: bool = False) -> Iterator[Parsed]:
    """Yield blocks of a file whose entries are sorted by samples: by its rows, or by its columns
    when it is transposed."""
    with open_bytes(source) as stream:
        banner = stream.readline(1 << 10)
        words = banner.lower().split()
        if words[:3] != [b"%%matrixmarket", b"matrix", b"coordinate"] or words[4:] != [b"general"]:
            raise NotInBlocks("it is not a list of entries")
        line = stream.readline(1 << 16)
        while line.startswith(b"%") or line.isspace():
            line = stream.readline(1 << 16)
        figures = line.split()
        if len(figures) != 3 or not all(figure.isdigit() for figure in figures):
            raise NotInBlocks("it has no sizes")
        height, width, count = map(int, figures)
        entries = _entries(stream, banner, (height, width))
        if transpose:
            entries = ((column, row, data) for row, column, data in entries)
            height, width = width, height
        seen = 0
        for block, nnz in _rows(entries, height, width):
            seen += nnz
            yield Parsed(block)
        if seen != count:
            raise NotInBlocks(f"{seen} entries instead of {count}")


def _entries(stream: BinaryIO, banner: bytes, shape: tuple[int, int]) -> Triples:
    """Yield rows, columns and values, some lines at a time, parsed as files of their own."""
    counts = banner.lower().split()[3] == b"integer"
    for text in whole_lines(stream):
        found = _counts(text, shape) if counts else None
        if found is not None:
            yield found
            continue
        count = text.count(b"\n") + (not text.endswith(b"\n"))
        sizes = f"{shape[0]} {shape[1]} {count}\n".encode()
        try:
            block = parse_matrixmarket(io.BytesIO(banner + sizes + text))
        except (ValueError, OverflowError) as error:  # reading it whole tells the line
            raise NotInBlocks(str(error)) from error
        yield block.row, block.col, block.data


def _counts(
    lines: bytes, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the entries of lines `row column count`, which the parser of bags of words takes; None
    where it does not."""
    from ...kernels import parse as kernel

    text = np.zeros(len(lines) + 1 + PAD, dtype=np.uint8)
    text[: len(lines)] = np.frombuffer(lines, dtype=np.uint8)
    text[len(lines)] = ord("\n")
    end = len(lines) + (not lines.endswith(b"\n"))
    limits = np.array([min(shape[0], LARGEST), min(shape[1], LARGEST), LARGEST])
    state, numbers = np.zeros(kernel.SIZE, dtype=np.int64), np.zeros(3, dtype=np.int64)
    room = end // 6 + 1  # the shortest entry takes six bytes
    column, count, row, length = (np.empty(room, dtype=np.int32) for _ in range(4))
    swift = int(sys.byteorder == "little")
    kernel.parse_lines(
        text, words_at(text), end, swift, limits, state, numbers, column, count, row, length
    )
    if state[kernel.FAULT]:
        return None
    found, runs = int(state[kernel.ENTRIES]), int(state[kernel.RUNS])
    every_row = np.repeat(row[:runs] - 1, length[:runs])
    return every_row, column[:found], count[:found].astype(np.int64)


def _rows(entries: Triples, height: int, width: int) -> Iterator[tuple[sp.csr_array, int]]:
    """Yield CSR blocks of complete rows, with their numbers of entries. The last row is held back,
    as it may go on in the next entries."""
    first, none = 0, np.empty(0, dtype=np.intp)
    row, column, data = none, none, np.empty(0)
    for more in entries:
        row, column = np.concatenate([row, more[0]]), np.concatenate([column, more[1]])
        data = np.concatenate([data, more[2]]) if data.size else more[2]
        if (np.diff(row) < 0).any() or row[0] < first:
            raise NotInBlocks("entries are not sorted by samples")
        last = int(row[-1])
        cut = int(np.searchsorted(row, last))
        if last > first:
            yield _block(row[:cut] - first, column[:cut], data[:cut], (last - first, width)), cut
            first, row, column, data = last, row[cut:], column[cut:], data[cut:]
    if height > first:
        yield _block(row - first, column, data, (height - first, width)), row.size


def _block(row: Any, column: Any, data: Any, shape: tuple[int, int]) -> sp.csr_array:
    block = sp.csr_array((data, (row, column)), shape=shape)
    block.sum_duplicates()
    return block


class _Numbers:
    """A stream that raises unless its body holds the numbers that its head announces, and nothing
    else."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._block, self._expected = _head(stream)
        self._place = 0
        self._lines = self._block.count(b"\n")
        self._last = SPACE  # kind of the last byte
        self._within = SPACE  # last kind in this number that may occur only once (dot, exponent)
        self._count = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        if self._place == len(self._block):
            self._block, self._place = self._next(), 0
        part = self._block[self._place : self._place + size]
        self._place += len(part)
        return part

    def _next(self) -> bytes:
        data: bytes = self._stream.read(BLOCK)
        self._check(data)
        if not data and not self._ended:
            # Without a newline at the end SciPy reads beyond the last byte and crashes.
            self._ended = True
            return b"\n"
        return data

    def _check(self, data: bytes) -> None:
        if data and self._last in (SPACE, DIGIT) and not data.translate(None, b"0123456789 \n"):
            self._count_integers(data)  # any order of these is a list of numbers
            return
        kinds = np.empty(len(data) + 1, dtype=np.uint8)
        kinds[0] = self._last
        kinds[1:] = _KINDS[np.frombuffer(data, dtype=np.uint8)]
        wrong = ~_ALLOWED[kinds[:-1] * np.uint8(8) + kinds[1:]]
        # A number has at most one dot and one exponent, in this order.
        once = np.flatnonzero((kinds[1:] != DIGIT) & (kinds[1:] != SIGN))
        marks = np.append(np.uint8(self._within), kinds[1:][once])
        twice = (marks[:-1] == EXPONENT) & (marks[1:] == DOT)
        twice |= (marks[:-1] == marks[1:]) & (marks[1:] != SPACE)
        if wrong.any() or twice.any():
            place = int(wrong.argmax()) if wrong.any() else int(once[twice.argmax()])
            line = self._lines + data[:place].count(b"\n") + 1
            around = data[: place + 1].rsplit(b"\n", 1)[-1][-60:]
            raise ValueError(f"line {line}: {around!r} is no list of numbers")
        self._count += int(np.count_nonzero((kinds[:-1] == SPACE) & (kinds[1:] != SPACE)))
        self._last, self._within = int(kinds[-1]), int(marks[-1])
        self._lines += data.count(b"\n")

    def _count_integers(self, data: bytes) -> None:
        digit = np.frombuffer(data, dtype=np.uint8) > ord(" ")
        self._count += int(np.count_nonzero(digit[1:] > digit[:-1]))
        self._count += int(digit[0] and self._last == SPACE)
        self._last = DIGIT if digit[-1] else SPACE
        self._within = self._within if digit.all() else SPACE
        self._lines += data.count(b"\n")

    def finish(self) -> None:
        """Check the bytes that SciPy left unread, and the count of all numbers."""
        while self._next():
            pass
        if self._expected is not None and self._count != self._expected:
            raise ValueError(
                f"it has {self._count} numbers after its sizes, but {self._expected} are expected: "
                "a line has too many fields, or there are too many lines"
            )


def _head(stream: Any) -> tuple[bytes, int | None]:
    """Return the lines up to the sizes, and how many numbers must follow; None for a head that
    SciPy will refuse."""
    banner = line = stream.readline(1 << 10)
    head = banner
    while line and (line is banner or line.startswith(b"%") or line.isspace()):
        line = stream.readline(1 << 16)
        head += line
    if b"\0" in head:
        raise ValueError("it has a NUL byte among its first lines")
    words, sizes = banner.lower().split(), line.split()
    if len(words) < 5 or not all(size.isdigit() and len(size) < 19 for size in sizes):
        return head, None
    fields = {b"pattern": 0, b"complex": 2}.get(words[3], 1)
    figures = [int(size) for size in sizes]
    if words[2] == b"coordinate" and len(figures) == 3:
        return head, figures[2] * (2 + fields)
    if words[2] == b"array" and len(figures) == 2:
        rows, columns = figures
        triangle = {b"general": 2 * rows * columns, b"skew-symmetric": rows * (columns - 1)}
        return head, triangle.get(words[4], rows * (columns + 1)) // 2 * fields
    return head, None


READER = Reader(
    "matrixmarket",
    (".mtx",),
    read_matrixmarket,
    matrixmarket_blocks,
    options={"transpose": (bool,)},
)
