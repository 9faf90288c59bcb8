"""Matrix Market files: parsed by SciPy, which takes the numbers it is looking for and skips what is
behind them; so every byte is looked at here on its way."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Path_, open_bytes

BLOCK = 1 << 18  # bytes looked at together
SPACE, DIGIT, SIGN, DOT, EXPONENT, OTHER = range(6)
# What may follow what in a list of numbers.
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


def read_matrixmarket(
    source: Path_, names: Any, *, transpose: bool = False
) -> tuple[Any, None, None]:
    """Rows are samples; `transpose` when they are features, as single-cell tools write them."""
    with open_bytes(source) as stream:
        try:
            matrix = parse_matrixmarket(stream)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{source}: not a Matrix Market file: {error}") from error
    matrix = matrix.T if transpose else matrix
    # here, where it is told whose size does not fit in memory
    return (sp.csr_array(matrix) if sp.issparse(matrix) else matrix), None, None


def parse_matrixmarket(stream: Any) -> Any:
    """An array, in coordinates where it is sparse."""
    from scipy.io import mmread

    # SciPy 1.15 is asked for arrays and 1.18 warns when it is not; those before make matrices.
    asked = "spmatrix" in inspect.signature(mmread).parameters
    numbers = _Numbers(stream)
    matrix = mmread(numbers, **({"spmatrix": False} if asked else {}))
    numbers.finish()
    return matrix


class _Numbers:
    """The bytes of a file whose body is nothing but the numbers its head promises."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._block, self._expected = _head(stream)
        self._place = 0
        self._lines = self._block.count(b"\n")
        self._last = SPACE  # kind of the last byte
        self._within = SPACE  # the last of its number that may not come twice
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
        self._look(data)
        if not data and not self._ended:
            # SciPy looks for the end of a line beyond the last byte, and crashes, without it.
            self._ended = True
            return b"\n"
        return data

    def _look(self, data: bytes) -> None:
        kinds = np.empty(len(data) + 1, dtype=np.uint8)
        kinds[0] = self._last
        kinds[1:] = _KINDS[np.frombuffer(data, dtype=np.uint8)]
        wrong = ~_ALLOWED[kinds[:-1] * np.uint8(8) + kinds[1:]]
        # Of a number, one dot and one exponent, in this order.
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

    def finish(self) -> None:
        """Nothing is left, and there was as much as there should be."""
        while self._next():
            pass
        if self._expected is not None and self._count != self._expected:
            raise ValueError(
                f"it has {self._count} numbers after its sizes, but {self._expected} are expected: "
                "a line has too many fields, or there are too many lines"
            )


def _head(stream: Any) -> tuple[bytes, int | None]:
    """The lines up to the sizes, and how many numbers must follow; None if nobody can tell, which
    SciPy finds out as well."""
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
