"""The command that looks after what was kept of parsed sources."""

from __future__ import annotations

from pathlib import Path

import click

from .options import FILE
from .output import note, print_rows


@click.command(short_help="List what is kept of parsed sources, or clear it.")
@click.argument("what", type=click.Choice(["list", "clear"]), default="list")
@click.option("--folder", type=FILE, metavar="FOLDER", help="Instead of the default one.")
def cache(what: str, folder: str | None) -> None:
    """List what is kept of parsed sources, or clear it.

    \b
    sparcipal cache         what is kept, and how much room it takes
    sparcipal cache clear   remove all of it

    Text whose arrays take more than 64 MB is kept in the folder of the environment variable
    SPARCIPAL_CACHE, or of the system for caches; SPARCIPAL_CACHE=off keeps nothing.
    """
    from ..data.files.bytes import size_words
    from ..data.files.cache import Cache, default_folder

    kept = Cache(default_folder() if folder is None else Path(folder))
    if what == "clear":
        note(f"cleared {size_words(kept.clear())} in {kept.folder}")
        return
    entries = kept.entries()
    note(f"{kept.folder}: {len(entries)} kept, {size_words(sum(e.size for e in entries))}")
    if entries:
        rows = [(size_words(entry.size), str(entry.facts["source"])) for entry in entries]
        print_rows(("size", "source"), [*rows])
