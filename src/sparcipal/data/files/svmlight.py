"""svmlight: a label and `feature:value` pairs per line, parsed by scikit-learn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Path_, open_bytes, whole_lines
from .reader import Columns, NotInBlocks, Parsed, Reader


def read_svmlight(source: Path_, names: Any, *, n_features: int | None = None) -> Parsed:
    """Return the features; the label that starts each line is no feature and is left out."""
    from sklearn.datasets import load_svmlight_file

    if n_features is None and names is not None:
        n_features = len(names)
    with open_bytes(source) as stream:
        try:
            matrix, _ = load_svmlight_file(stream, n_features=n_features)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{source}: not a svmlight file: {error}") from error
    return Parsed(sp.csr_array(matrix))


def svmlight_blocks(
    source: Path_, names: Any, *, n_features: int | None = None
) -> Iterator[Parsed | Columns]:
    """Yield the matrix of `read_svmlight`, some lines at a time.

    Features are counted from one when no line has a feature 0, which only the last line can tell.
    """
    from sklearn.datasets import load_svmlight_file

    if n_features is None and names is not None:
        n_features = len(names)
    lowest, rows, width, line = np.inf, 0, 0, 1
    with open_bytes(source) as stream:
        for text in whole_lines(stream):
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
                rows, width = rows + block.shape[0], max(width, block.shape[1])
                yield Parsed(sp.csr_array(block))
    if not rows:
        raise NotInBlocks("there are no samples")
    first = int(0 < lowest < np.inf)
    width = max(width - first, 1)
    if n_features is not None and n_features < width:
        raise ValueError(
            f"{source}: not a svmlight file: n_features={n_features}, but a line has feature "
            f"{width + first - 1}"
        )
    yield Columns(n_features or width, first)


READER = Reader(
    "svmlight",
    (".svmlight", ".libsvm", ".svm"),
    read_svmlight,
    svmlight_blocks,
    options={"n_features": (int,)},
)
