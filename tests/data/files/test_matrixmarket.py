"""Matrix Market files: numbers in all their spellings, and nothing behind them that is not told."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sparcipal import read
from sparcipal.data.files import matrixmarket

COORDINATE = b"%%MatrixMarket matrix coordinate real general\n% made by hand\n\n3 2 3\n"
ARRAY = b"%%MatrixMarket matrix array real general\n2 2\n"


@pytest.fixture(params=[1, 7, 1 << 18], autouse=True)
def blocks(request, monkeypatch):
    """Numbers are cut anywhere."""
    monkeypatch.setattr(matrixmarket, "BLOCK", request.param)


def parsed(content):
    found = matrixmarket.parse_matrixmarket(io.BytesIO(content))
    return found.toarray() if sp.issparse(found) else found


def test_matrix_market_reads_numbers_in_all_their_spellings():
    body = b"1 1 -.5\r\n2\t2  3.\n\n 3 1 12.5e-1 "
    np.testing.assert_array_equal(parsed(COORDINATE + body), [[-0.5, 0], [0, 3], [1.25, 0]])
    np.testing.assert_array_equal(parsed(ARRAY + b"1E3\n0\n7\n-2.5"), [[1000, 7], [0, -2.5]])


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("kind", ["real", "integer", "pattern", "array"])
def test_matrix_market_reads_what_scipy_writes(kind, symmetry):
    rng = np.random.default_rng(0)
    A = np.tril(np.round(rng.standard_normal((5, 5)) * 3, 3 if kind != "integer" else 0), -1)
    A = A + {"general": 0, "symmetric": 1, "skew-symmetric": -1}[symmetry] * A.T
    A = A.astype(int) if kind == "integer" else A
    stream = io.BytesIO()
    field = "pattern" if kind == "pattern" else None
    if kind == "pattern" and symmetry == "skew-symmetric":
        pytest.skip("a pattern has no signs")
    matrix = A if kind == "array" else sp.coo_array(A)
    scipy.io.mmwrite(stream, matrix, field=field, symmetry=symmetry)
    expected = (A != 0) * 1.0 if kind == "pattern" else A
    np.testing.assert_array_equal(parsed(stream.getvalue()), expected)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (b"3 1 4G", "line 7: "),  # SciPy's parser would crash
        (b"3 1 4\xf9", "no list of numbers"),
        (b"3 1 4\0\n", "no list of numbers"),
        (b"3 1 1.2.3\n", "no list of numbers"),  # and here take the first number it finds
        (b"3 1 1e2e3\n", "no list of numbers"),
        (b"3 1 1e2.5\n", "no list of numbers"),
        (b"3 1 1.5D3\n", "no list of numbers"),
        (b"3 1 4-5\n", "no list of numbers"),
        (b"3 1 nan\n", "no list of numbers"),
        (b"3 1 4 5\n", "10 numbers after its sizes, but 9 are expected"),
        (b"3 1\n", "."),
        (b"3 1 .\n", "."),
        (b"", "Truncated"),
        (b"4 1 1\n", "index"),
    ],
)
def test_matrix_market_names_what_it_cannot_read(tmp_path, last, why):
    path = tmp_path / "a.mtx"
    path.write_bytes(COORDINATE + b"1 1 1.5\n2 2 2\n" + last)
    with pytest.raises(ValueError, match="not a Matrix Market file") as told:
        read(path)
    assert why.lower() in str(told.value).lower()


@pytest.mark.parametrize(
    "rest", [b"1\n2\n3\n4G", b"1\n2\n3\n4 5\n", b"1 2\n3 4\n", b"1\n2\n3\n4\n5\n"]
)
def test_arrays_without_one_number_on_each_line_are_refused(rest):
    with pytest.raises(ValueError, match=r"number|line|Line|values|Truncated"):
        parsed(ARRAY + rest)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"%%MatrixMarket\n1 1 1\n",
        b"%%MatrixMarket matrix coordinate real general\n3 x 3\n",
        b"\0\0",
        b"%%MatrixMarket matrix array real general\n1 \x001\n1\n",
    ],
)
def test_matrix_market_refuses_heads_that_are_none(head):
    with pytest.raises(ValueError, match=r"header|Header|banner|Banner|integer|line|Line|NUL"):
        parsed(head)
