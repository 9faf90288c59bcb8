"""Files in blocks of samples, straight into the cache: what is parsed never lies in memory whole.

Tables of text and svmlight come in lines, one per sample; Parquet in groups of rows. A Matrix
Market file can be read this way when its entries are sorted by samples.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .. import frames
from . import tables
from .bytes import Path_, open_bytes
from .cache import Column, Draft
from .matrixmarket import parse_matrixmarket

Read = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples
BYTES = 1 << 24  # of text parsed together
ROWS = 1 << 16  # of a Parquet file read together


class NotInBlocks(Exception):
    """The file must be read whole."""


class DiskFull(Exception):
    """What was parsed does not fit on the disk of the cache."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Written:
    """Blocks of rows, dense or CSR, one after the other into the files of a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._columns: dict[str, Column] = {}
        self._lengths: list[np.ndarray] = []
        self._kind: np.dtype[Any] | None = None
        self.rows, self.width, self.sparse = 0, 0, False

    def add(self, block: Any) -> None:
        if self._kind not in (None, block.dtype):
            raise NotInBlocks(f"{block.dtype} after {self._kind}")
        if block.shape[1] > np.iinfo(np.int32).max:
            raise NotInBlocks("column numbers need more than 32 bits")
        self._kind, self.sparse = block.dtype, sp.issparse(block)
        self.rows, self.width = self.rows + block.shape[0], max(self.width, block.shape[1])
        try:
            if self.sparse:
                self._lengths.append(np.diff(block.indptr))
                self._write("indices", block.indices.astype(np.int32, copy=False))
                self._write("data", block.data)
            else:
                self._write("X", block)
        except OSError as error:
            raise DiskFull(error) from error

    def _write(self, name: str, array: np.ndarray) -> None:
        if name not in self._columns:
            self._columns[name] = self._draft.column(name, array.dtype)
        self._columns[name].write(array)

    def finish(self, width: int, shift: int = 0) -> dict[str, Any]:
        """Complete the files; `shift` is taken from every column number. Returns the facts."""
        try:
            if not self.sparse:
                self._columns["X"].close((self.rows, width))
                return {"format": None, "shape": [self.rows, width]}
            if shift:
                self._shifted(shift)
            for column in self._columns.values():
                column.close()
            indptr = np.zeros(self.rows + 1, dtype=np.int64)
            np.cumsum(np.concatenate(self._lengths), out=indptr[1:])
            self._draft.put("indptr", indptr)
        except OSError as error:
            raise DiskFull(error) from error
        return {"format": "csr", "shape": [self.rows, width]}

    def _shifted(self, shift: int) -> None:
        old = self._columns["indices"]
        new = self._draft.column("shifted", old.dtype)
        for start in range(0, old.count, BYTES):
            new.write(old.part(start, min(BYTES, old.count - start)) - shift)
        old.abandon()
        new.path.replace(old.path)
        self._columns["indices"] = new

    @property
    def nbytes(self) -> int:
        return sum(column.count * column.dtype.itemsize for column in self._columns.values())


def write_blocks(
    source: Path_, format: str, names: tuple[str, ...] | None, options: dict[str, Any], draft: Draft
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Parse a source into the files of a draft: facts, names, and how many bytes they take."""
    written = Written(draft)
    if format == "svmlight":
        width, shift = _svmlight(source, names, written, **options)
        return written.finish(width, shift), {"features": None, "samples": None}, written.nbytes
    found: dict[str, Any] = {"features": None, "samples": None}
    for matrix, features, samples in BLOCKS[format](source, names, **options):
        written.add(matrix)
        found["features"] = features
        if samples is not None:
            found["samples"] = [*(found["samples"] or ()), *samples]
    return written.finish(written.width), found, written.nbytes


# svmlight ----------------------------------------------------------------------------------------


def _svmlight(
    source: Path_, names: Any, written: Written, *, n_features: int | None = None
) -> tuple[int, int]:
    """The number of features, and 1 when they are counted from one: no line has a feature 0."""
    from sklearn.datasets import load_svmlight_file

    if n_features is None and names is not None:
        n_features = len(names)
    lowest, line = np.inf, 1
    with open_bytes(source) as stream:
        for text in _lines(stream):
            try:
                block, _ = load_svmlight_file(io.BytesIO(text), zero_based=True)
            except (ValueError, IndexError) as error:
                last = line + text.rstrip(b"\n").count(b"\n")
                raise ValueError(
                    f"{source}, lines {line} to {last}: not a svmlight file: {error}"
                ) from error
            line += text.count(b"\n")
            if block.nnz:
                lowest = min(lowest, int(block.indices.min()))
            if block.shape[0]:
                written.add(sp.csr_array(block))
    if not written.rows:
        raise NotInBlocks("no samples")
    shift = int(0 < lowest < np.inf)
    width = max(written.width - shift, 1)
    if n_features is not None and n_features < width:
        raise ValueError(
            f"{source}: not a svmlight file: n_features={n_features}, but a line has feature "
            f"{width + shift - 1}"
        )
    return n_features or width, shift


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, a block at a time."""
    rest = b""
    while text := stream.read(BYTES):
        end = text.rfind(b"\n") + 1
        if not end:
            rest += text
            continue
        yield rest + text[:end]
        rest = text[end:]
    if rest:
        yield rest


# Matrix Market -----------------------------------------------------------------------------------


def _matrixmarket(source: Path_, names: Any, *, transpose: bool = False) -> Iterator[Read]:
    """Entries sorted by samples: the rows of the file, or its columns when it is transposed."""
    with open_bytes(source) as stream:
        banner = stream.readline(1 << 10)
        words = banner.lower().split()
        if words[:3] != [b"%%matrixmarket", b"matrix", b"coordinate"] or words[4:] != [b"general"]:
            raise NotInBlocks("not a list of entries")
        line = stream.readline(1 << 16)
        while line.startswith(b"%") or line.isspace():
            line = stream.readline(1 << 16)
        figures = line.split()
        if len(figures) != 3 or not all(figure.isdigit() for figure in figures):
            raise NotInBlocks("no sizes")
        height, width, count = map(int, figures)
        entries = _entries(stream, banner, (height, width))
        if transpose:
            entries = ((column, row, data) for row, column, data in entries)
            height, width = width, height
        seen = 0
        for block, nnz in _rows(entries, height, width):
            seen += nnz
            yield block, None, None
        if seen != count:
            raise NotInBlocks(f"{seen} entries instead of {count}")


Triples = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def _entries(stream: BinaryIO, banner: bytes, shape: tuple[int, int]) -> Triples:
    """Some lines at a time, each read as a file of its own."""
    for text in _lines(stream):
        count = text.count(b"\n") + (not text.endswith(b"\n"))
        sizes = f"{shape[0]} {shape[1]} {count}\n".encode()
        try:
            block = parse_matrixmarket(io.BytesIO(banner + sizes + text))
        except (ValueError, OverflowError) as error:  # who reads it whole knows which line it is
            raise NotInBlocks(str(error)) from error
        yield block.row, block.col, block.data


def _rows(entries: Triples, height: int, width: int) -> Iterator[tuple[sp.csr_array, int]]:
    """CSR blocks of complete rows; a row may go on in the next block of entries."""
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


# Parquet -----------------------------------------------------------------------------------------


def parquet_bytes(source: Path_) -> int:
    """What the numbers of a Parquet file take in memory; 0 when that cannot be told."""
    try:
        import pyarrow.parquet as parquet

        about = parquet.read_metadata(os.fspath(source))
    except Exception:  # whatever is wrong with it, its reader says it better
        return 0
    return 8 * int(about.num_rows) * int(about.num_columns)


def _parquet(source: Path_, names: Any) -> Iterator[Read]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with open_bytes(source), parquet.ParquetFile(os.fspath(source)) as file:
        about = file.schema_arrow.pandas_metadata or {}
        if any(isinstance(index, str) for index in about.get("index_columns", ())):
            raise NotInBlocks("rows with labels")
        for batch in file.iter_batches(ROWS):
            yield frames.from_frame(pa.Table.from_batches([batch]))


BLOCKS: dict[str, Callable[..., Iterator[Read]]] = {
    "csv": tables.csv_blocks,
    "tsv": tables.tsv_blocks,
    "matrixmarket": _matrixmarket,
    "parquet": _parquet,
}
