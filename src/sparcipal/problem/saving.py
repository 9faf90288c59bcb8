"""Results as JSON documents and as files that are never seen half written.

A document holds dataclasses by field and arrays as base64 of their little-endian bytes; its fields
are listed in docs/proof_format.rst. Nothing here knows what a result is: result.py builds one from
what `document_of` returns.
"""

from __future__ import annotations

import base64
import json
import math
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .reading import said

FORMAT = 2  # version of the JSON document; a reader refuses any other
WRITTEN = "name a file that save() or `sparcipal fit -o` wrote"
HEAD = 64  # bytes that tell whether a file is worth reading
LIMIT = 4 * 2**30  # bytes of a file; proofs end at about 1 GB
_DTYPES = {"<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8", "|b1"}


def text_of(result: Any, *, plain: bool = False) -> str:
    """Return a dataclass as the text of a JSON document; if `plain`, arrays are lists."""
    return json.dumps({"sparcipal": FORMAT, **_encoded(result, plain)}, allow_nan=True)


def document_of(text: str) -> dict[str, Any]:
    """Return the fields of a document with arrays decoded; ValueError for other formats."""
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON document (line {error.lineno}); {WRITTEN}") from error
    if not isinstance(document, dict) or "sparcipal" not in document:
        raise ValueError(f"the document has no 'sparcipal' entry; {WRITTEN}")
    if document["sparcipal"] != FORMAT:
        raise ValueError(
            f"format {said(document['sparcipal'])} is not the format {FORMAT} of this version"
        )
    parts: dict[str, Any] = _decoded(document)
    del parts["sparcipal"]
    return parts


def holds_alternatives(parts: dict[str, Any]) -> bool:
    """Return whether a document has the entries of alternatives to a result."""
    return {"result", "within", "components"} <= parts.keys()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the document; readers differ in which of two entries of one name they
    take."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the document has two entries named {twice!a}")
    return dict(pairs)


def _encoded(value: Any, plain: bool) -> Any:
    if is_dataclass(value):
        return {f.name: _encoded(getattr(value, f.name), plain) for f in fields(value)}
    if isinstance(value, np.ndarray):
        if plain:
            return value.tolist()
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data = base64.b64encode(array.tobytes()).decode("ascii")
        return {"$array": data, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, dict):
        return {str(key): _encoded(item, plain) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item, plain) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if "$array" not in value:
            return {key: _decoded(item) for key, item in value.items()}
        return _array_of(value)
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


def _array_of(value: dict[str, Any]) -> np.ndarray:
    if set(value) != {"$array", "dtype", "shape"}:
        raise ValueError("an array is written with other entries than its bytes, dtype, shape")
    dtype, shape, text = value["dtype"], value["shape"], value["$array"]
    if not (isinstance(dtype, str) and dtype in _DTYPES):
        raise ValueError(f"array of unknown dtype {said(dtype)}")
    if not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError(f"array of the shape {said(shape)}")
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:  # text of other letters or length than base64 has
        raw = None
    if raw is None or len(raw) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise ValueError("the bytes of an array are not those of its dtype and shape")
    try:
        array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    except ValueError as error:  # more dimensions, or longer empty ones, than arrays have
        raise ValueError("an array of a shape that no array has") from error
    return array.astype(array.dtype.newbyteorder("="))


# --- files ---


def write_atomically(target: Path, text: str) -> None:
    """Write beside the target, then rename, so that the target is never half written."""
    write_together({target: text})


def write_bytes(target: Path, write: Callable[[BinaryIO], None]) -> None:
    """Have `write` fill a file beside the target, then rename it."""
    _refuse_special(target)
    temporary = _beside(target)
    try:
        with open(temporary, "xb") as stream:
            write(stream)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_together(texts: dict[Path, str], stale: Path | None = None) -> None:
    """Write every text beside its target, remove the `stale` file, then rename them all.

    A failure before the first rename leaves the targets as they were.
    """
    for file in texts:
        _refuse_special(file)
    ready: dict[Path, Path] = {}
    try:
        for file, text in texts.items():
            ready[file] = _written_beside(file, text)
        if stale is not None:
            stale.unlink(missing_ok=True)
        for file in texts:
            os.replace(ready.pop(file), file)
    finally:
        for temporary in ready.values():
            temporary.unlink(missing_ok=True)


def _refuse_special(target: Path) -> None:
    """Refuse devices and pipes, which a rename would replace; the system refuses folders."""
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ValueError(f"{target} is a device or pipe; name a regular file")


def _written_beside(target: Path, text: str) -> Path:
    """Write a file in the target's folder through to the disk; remove it if that fails."""
    temporary = _beside(target)
    try:
        # A plain open gives the file the permissions of the user's umask.
        with open(temporary, "x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")


def read_text(path: Path, limit: int = LIMIT) -> str:
    """Return the text of a file that should hold a result; ValueError when it holds none.

    Pipes and devices, which may never end, and files of more than `limit` bytes are refused.
    """
    # O_NONBLOCK keeps a pipe from blocking; an open file cannot be swapped after the check.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode):
        os.close(descriptor)
        raise ValueError(f"{path} is a device, pipe or folder; name a regular file")
    with open(descriptor, "rb") as stream:
        if told.st_size and not stream.peek(HEAD)[:HEAD].lstrip().startswith(b"{"):
            raise ValueError(
                f"not a sparcipal result: {path} does not begin with a brace; {WRITTEN}"
            )
        raw = stream.read(limit + 1) if told.st_size <= limit else b""
        if told.st_size > limit or len(raw) > limit:
            size = max(told.st_size, len(raw))
            raise ValueError(
                f"{path} has {size:,} bytes, above the limit of {limit:,}; if you trust the file "
                f"that far, pass limit={size}"
            )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not a sparcipal result: {path} holds no text (byte {error.start} is not UTF-8); name "
            "the .json file that a result was saved to"
        ) from error


def proof_path(target: Path) -> Path:
    """Return the path of the proof of a claim, which lies beside it."""
    return target.with_name(target.name + ".proof")


def sums_path(target: Path) -> Path:
    """Return the path of the sums over the rows of a result, which lie beside it."""
    return target.with_name(target.name + ".sums")
