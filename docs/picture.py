"""The picture of the demo in the README: python docs/picture.py MODEL.JSON PICTURE.SVG"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sparcipal.cli.phrases import said_in_the_shell
from sparcipal.problem.result import Result
from sparcipal.report.terminal import result_view


def picture(model: str, target: str) -> None:
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ sparcipal demo", style="bold green"))
    console.print(result_view(said_in_the_shell(Result.load(model)), feature="word"))
    svg = console.export_svg(title="sparcipal demo")
    # No font from the network: whatever monospace the reader has.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "monospace")
    Path(target).write_text(re.sub(r"\n\s*\n", "\n", svg), encoding="utf-8")


if __name__ == "__main__":
    picture(sys.argv[1], sys.argv[2])
