"""Tasks for the workers of a cluster: imported there, so it imports little."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any


def deadly(block: Any, folder: str) -> Any:
    """Kills the worker it runs on, the first time: a file in the folder says whether that has
    been."""
    try:
        os.close(os.open(Path(folder) / "killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return None


class Tripling:
    """Work for `ordered_map`; one item kills its worker, but never the process it came from."""

    def __init__(self, folder: str) -> None:
        self.folder, self.home = folder, os.getpid()

    def triple(self, item: int) -> int:
        if item == 3 and os.getpid() != self.home:
            deadly(None, self.folder)
        return 3 * item


class DeadlyElsewhere:
    """A function whose first call kills its worker, but never the process it came from."""

    def __init__(self, function: Any, folder: str) -> None:
        self.function, self.folder, self.home = function, folder, os.getpid()

    def __call__(self, *arguments: Any) -> Any:
        if os.getpid() != self.home:
            deadly(None, self.folder)
        return self.function(*arguments)
