"""Files that no friend would send: valid ones damaged at random, and bombs made by hand."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _sparse_npz() -> bytes:
    out = io.BytesIO()
    sp.save_npz(out, sp.csr_array(np.eye(4)))
    return out.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": [3, 1, 2]}), out)
    return out.getvalue()


X = np.arange(12.0).reshape(4, 3) ** 1.5
SEEDS: dict[str, Callable[[], bytes]] = {
    "docword.x.txt": lambda: b"3\n4\n5\n1 1 2\n1 2 1\n2 3 4\n3 4 1\n3 1 9\n",
    "bare.txt": lambda: b"1 1 2\n1 2 1\n2 3 4\n3 4 1\n3 1 9\n",
    "docword.z.txt.gz": lambda: gzip.compress(b"3\n4\n3\n1 1 2\n1 2 1\n2 3 4\n"),
    "table.csv": lambda: b"name,a,b\nx,1,2\ny,3,4.5\nz,-1,1e3\n",
    "table.tsv": lambda: b"a\tb\n1\t2\n3\t4.5\n",
    "matrix.mtx": lambda: (
        b"%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1.5\n2 2 2\n3 1 4\n"
    ),
    "labels.svmlight": lambda: b"1 1:0.5 3:2\n-1 2:1\n1 1:3 2:4\n",
    "array.npy": lambda: _npy(X),
    "arrays.npz": lambda: _npz(X=X, feature_names=np.array(["a", "b", "c"])),
    "sparse.npz": _sparse_npz,
    "texts.jsonl": lambda: b'{"text": "one fish two fish"}\n"red fish"\n{"text": "blue"}\n',
    "texts.txt": lambda: b"one fish two fish\nred fish blue fish\n",
    "frame.parquet": _parquet,
}
INSERTS = (
    b"\x00",
    b"\xff\xfe",
    b"\xc3\x28",
    b"99999999999999999999",
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"\n",
    b" ",
    b",",
    b'"',
    b"=cmd|' /C calc'!A0",
    b"[" * 200,
    b"\r",
)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, overwrite, insert or repeat somewhere, once to three times."""
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(content) + 1))
        kind = rng.integers(5)
        if kind == 0:
            content = content[:place]
        elif kind == 1 and content:
            place = min(place, len(content) - 1)
            content = content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
        elif kind == 2:
            content = content[:place] + INSERTS[int(rng.integers(len(INSERTS)))] + content[place:]
        elif kind == 3:
            content = content[:place] + content[max(0, place - 20) :]
        else:
            content = content[place:]
    return content


def _npy_header(shape: str, dtype: str = "'<f8'") -> bytes:
    head = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    padded = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode()


def _zip_of(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


ZEROS = 1 << 27  # bytes that a bomb unpacks to


def _gzip_bomb(line: bytes) -> bytes:
    """A thousand times its size: one compressed member, repeated."""
    member = gzip.compress(line * ((1 << 22) // len(line)), 6)
    return member * (ZEROS >> 22)


class _Pickled:
    def __reduce__(self):
        return (Path("/tmp/sparcipal-was-here").write_text, ("pickled",))


def _npz_bomb() -> bytes:
    """An array of zeros, a thousand times the size of its zip entry."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w") as f,
    ):
        f.write(_npy_header("(1024, 16384)"))
        block = bytes(1 << 22)
        for _ in range(ZEROS >> 22):
            f.write(block)
    return out.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "docword.huge.txt": lambda: b"999999999999\n999999999999\n1\n1 1 1\n",
    "docword.wide.txt": lambda: b"2\n2000000000\n2\n1 1 1\n2 2000000000 1\n",
    "docword.bomb.txt.gz": lambda: _gzip_bomb(b"1 1 1\n"),
    "bomb.csv.gz": lambda: _gzip_bomb(b"0" * 4096),
    "lines.txt.gz": lambda: _gzip_bomb(b"a" * 4096),
    "huge.mtx": lambda: (
        b"%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 1\n1 1 1\n"
    ),
    "many.mtx": lambda: b"%%MatrixMarket matrix coordinate real general\n3 3 4000000000\n1 1 1\n",
    "dense.mtx": lambda: b"%%MatrixMarket matrix array real general\n100000 100000\n1\n",
    "huge.npy": lambda: _npy_header("(100000, 1000000)") + bytes(80),
    "negative.npy": lambda: _npy_header("(-1, -5)") + bytes(80),
    "pickled.npy": lambda: _npy(np.array([[_Pickled(), 1]], dtype=object)),
    "pickled.npz": lambda: _npz(X=np.array([[_Pickled(), 1]], dtype=object)),
    "bomb.npz": _npz_bomb,
    "declared.npz": lambda: _zip_of("X.npy", _npy_header("(100000, 1000000)") + bytes(80)),
    "paths.npz": lambda: _zip_of("../../X.npy", _npy(X)),
    "wide.svmlight": lambda: b"1 1:1 2000000000:1\n0 2:1\n",
    "deep.jsonl": lambda: b"[" * 200_000 + b"\n",
    "nul.csv": lambda: b"a,b\n1,2\x00\n3,4\n",
    "latin.csv": lambda: b"caf\xe9,b\n1,2\n3,5\n",
    "fields.csv": lambda: b"a,b\n" + b",".join([b"1"] * 200_000) + b"\n",
    "quote.csv": lambda: b'a,b\n"' + b"1" * 300_000 + b"\n",
}


def models() -> dict[str, str]:
    """Documents that are no results, each in its own way."""
    empty = {"sparcipal": 2}
    array = {"$array": "", "dtype": "<f8", "shape": [10**15]}
    return {
        "deep list": "[" * 100_000,
        "deep object": '{"a":' * 100_000,
        "deep inside": json.dumps(empty)[:-1] + ', "info": ' + "[" * 50_000 + "]" * 50_000 + "}",
        "number": "1" * 100_000,
        "surrogate": '{"sparcipal": "\\ud800"}',
        "array": json.dumps({**empty, "mean": array}),
        "object dtype": json.dumps({**empty, "mean": {**array, "dtype": "|O", "shape": [1]}}),
        "string dtype": json.dumps({**empty, "mean": {**array, "dtype": "<U999999999"}}),
        "repeated": '{"sparcipal": 2, "sparcipal": 2}',
        "nul": "\x00",
    }


def single_cells(folder: Path) -> Path:
    """A file of single cells as anndata writes it."""
    import anndata

    path = folder / "cells.h5ad"
    cells = anndata.AnnData(sp.csr_matrix(X), var={"gene": ["a", "b", "c"]})
    cells.obs_names = ["k", "l", "m", "n"]
    cells.write_h5ad(path)
    return path


def overwritten(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed in place: a format with offsets stays readable further down."""
    changed = bytearray(content)
    for place in rng.integers(len(content), size=int(rng.integers(1, 40))):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def _in_place_of_x(make: Callable[[Any], None]) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file["X"]
        make(file)

    return change


def _virtual(file: Any) -> None:
    import h5py

    layout = h5py.VirtualLayout((4, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5ad", "data", (4, 3))
    file.create_virtual_dataset("X", layout)


def _linked(file: Any) -> None:
    import h5py

    file["X"] = h5py.ExternalLink("other.h5ad", "/X")


def _soft(file: Any) -> None:
    import h5py

    file["X"] = h5py.SoftLink("/nowhere")


def _references(file: Any) -> None:
    import h5py

    file.create_dataset("X", (4, 3), dtype=h5py.ref_dtype)


def _declared(where: str, shape: tuple[int, int]) -> Callable[[Any], None]:
    """Chunks that were never written take no place, and are zeros when they are read."""
    return lambda file: file.create_dataset(where, shape, "f8", chunks=(4, 1000))


def _set(where: str, place: Any, value: Any) -> Callable[[Any], None]:
    return lambda file: file[where].__setitem__(place, value)


# What is done to a file of single cells, and words of the refusal.
CELLS: dict[str, tuple[Callable[[Any], None], str]] = {
    "declared": (_in_place_of_x(_declared("X", (4, 10**11))), "more than 200 times"),
    "declared elsewhere": (_declared("uns/bomb", (10**6, 10**6)), "more than 200 times"),
    "raw bytes of another file": (
        _in_place_of_x(
            lambda f: f.create_dataset("X", (4, 3), "f8", external=[("/etc/passwd", 0, 96)])
        ),
        "lies in another file",
    ),
    "link to another file": (_in_place_of_x(_linked), "lies in another file"),
    "assembled from another file": (_in_place_of_x(_virtual), "lies in another file"),
    "link to nowhere": (_in_place_of_x(_soft), "damaged, or not h5ad"),
    "index": (_set("X/indices", 0, 10**8), "broken sparse matrix"),
    "pointer": (_set("X/indptr", 1, 10**8), "broken sparse matrix"),
    "shape": (
        lambda file: file["X"].attrs.__setitem__("shape", (10**12, 10**12)),
        "not enough memory",
    ),
    "loop": (lambda file: file["uns"].__setitem__("me", file["uns"]), "damaged, or not h5ad"),
    "letters": (
        _in_place_of_x(lambda f: f.__setitem__("X", np.full((4, 3), b"a"))),
        "instead of numbers",
    ),
    "references": (_in_place_of_x(_references), "instead of numbers"),
    "pickle": (
        lambda file: file["X"].attrs.__setitem__("encoding-type", "pickle"),
        "damaged, or not h5ad",
    ),
}
