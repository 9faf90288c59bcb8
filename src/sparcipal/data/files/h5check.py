"""A program that looks through an .h5ad file before it is read.

    python -P h5check.py FILE LARGE RATIO

It prints what is wrong with the file and exits with 1, or prints nothing. It refuses arrays that
lie in other files, and arrays that unpack to more than LARGE bytes and RATIO times the size of the
file.

The HDF5 library crashes on some damaged files and never ends on others, so it needs a process of
its own. The program imports nothing of the package, so that it runs by its path alone; -P keeps the
modules beside it, such as csv.py, from hiding those of Python.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import h5py

SMALL = 1 << 20  # bytes of an array that is read on the way


class Visitor:
    """Visits every link and attribute, reads small arrays and finds the chunks of large ones."""

    def __init__(self) -> None:
        self.size = 0

    def visit(self, name: str, item: Any) -> None:
        for attribute in item.attrs:
            item.attrs[attribute]
        if isinstance(item, h5py.Group):
            links = (item.get(key, getlink=True) for key in item)
            outside = any(isinstance(link, h5py.ExternalLink) for link in links)
        else:
            outside = item.is_virtual or bool(item.external)
        if outside:
            raise SystemExit(f"{name!r} lies in another file; copy everything into one file")
        if isinstance(item, h5py.Dataset) and item.shape:
            self._array(item)

    def _array(self, item: Any) -> None:
        size = item.size * item.dtype.itemsize
        self.size += size
        if size <= SMALL:
            item[()]
        elif item.chunks:
            item.id.get_num_chunks()


def main(path: str, large: int, ratio: int) -> None:
    visitor = Visitor()
    try:
        with h5py.File(path, "r") as file:
            visitor.visit("/", file)
            file.visititems(visitor.visit)
    except Exception as error:  # HDF5 has no class of its own for files that it cannot read
        raise SystemExit(f"damaged, or not h5ad ({error})") from None
    if visitor.size > large and visitor.size > ratio * os.path.getsize(path):
        raise SystemExit(
            f"the arrays unpack to {visitor.size / 1e9:.3g} GB, more than {ratio} times the size "
            "of the file; write it without compression if you trust it"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
