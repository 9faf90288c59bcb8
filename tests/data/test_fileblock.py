"""Rows of a file, named so that they can be opened where they are read."""

from __future__ import annotations

import pickle

import numpy as np

from sparcipal.data.fileblock import FileBlock, Piece
from tests.support.brute import sparse_rows

X = np.random.default_rng(0).standard_normal((20, 5))


def test_file_block_opens_its_rows_after_pickling(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    block = FileBlock.of(mapped, 3, 9)
    assert block is not None
    there = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(there.open(), X[3:9])
    assert FileBlock.of(X, 3, 9) is None, "rows in memory have no file"
    assert Piece.of(mapped[:, 1:3]) is None, "columns do not lie together"


def test_file_block_opens_sparse_rows(tmp_path):
    S = sparse_rows((12, 7), 0.4, 1)
    S.data[:] = np.arange(S.nnz) + 1.0
    parts = {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(S, name))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    from sparcipal.data.rows import csr_of

    mapped = csr_of(parts["data"], parts["indices"], parts["indptr"], S.shape)
    block = FileBlock.of(mapped, 2, 8)
    assert block is not None
    np.testing.assert_array_equal(block.open().toarray(), S[2:8].toarray())
    nothing = FileBlock.of(mapped, 4, 4)
    assert nothing is not None
    assert nothing.open().shape == (0, 7)
