"""Look through an .h5ad file in a process of its own: on some damaged ones the HDF5 library
crashes, and on others it never comes to an end.

    python -P h5check.py FILE LARGE RATIO

says what is wrong with the file, and nothing if it can be read. No array may lie in another file,
and they must not unpack to more than LARGE bytes and RATIO times what the file has.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import h5py

SMALL = 1 << 20  # bytes of an array that is read on the way


class Visitor:
    """Links, attributes and small arrays, all of them; of large ones where their pieces are."""

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
    except Exception as error:  # the library has no class of its own for what it cannot read
        raise SystemExit(f"damaged, or not h5ad ({error})") from None
    if visitor.size > large and visitor.size > ratio * os.path.getsize(path):
        raise SystemExit(
            f"the arrays unpack to {visitor.size / 1e9:.3g} GB, more than {ratio} times the size "
            "of the file; write it without compression if you trust it"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
