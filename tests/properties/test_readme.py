"""The example of the README runs, and prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import re

from tests.support.places import ROOT


def test_the_example_prints_what_it_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("<!-- example -->") : text.index("<!-- end of the example -->")]
    code, expected = re.findall(r"```\w+\n(.*?)```", part, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert _steady(printed.getvalue()) == _steady(expected)


def _steady(text: str) -> list[str]:
    """Without the digits of the gap, which are rounding, and the widths that follow them."""
    text = re.sub(r"\d\.\d+e-\d+ %", "tiny %", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]
