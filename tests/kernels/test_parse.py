"""Lines of three numbers to integers."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels import parse

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("1 2 3\n", 6),
        (" 1\t2 3 \r\n", 9),
        ("\n", -1),
        ("1 2\n", -2),
        ("1 2 3 4\n", -2),
        ("a\n", -2),
    ],
)
def test_any_line_reads_three_numbers_or_tells_the_fault(line, end):
    text = np.frombuffer(line.encode() + bytes(32), dtype=np.uint8)
    numbers = np.zeros(3, dtype=np.int64)
    assert parse.any_line(text, 0, numbers) == end
    assert end < 0 or numbers.tolist() == [1, 2, 3]
