"""This module holds the command that lists and clears the cache."""

from __future__ import annotations

from pathlib import Path

import click

from .options import FILE
from .output import note, print_rows


@click.command(short_help="List the cache entries of parsed sources, or clear them.")
@click.argument("what", type=click.Choice(["list", "clear"]), default="list")
@click.option("--folder", type=FILE, metavar="FOLDER", help="Instead of the default one.")
def cache(what: str, folder: str | None) -> None:
    """List the cache entries of parsed sources, or clear them.

    \b
    sparcipal cache         the entries, and how much room they take
    sparcipal cache clear   remove all of them

    Text whose arrays take more than 64 MB gets an entry in the folder of the environment variable
    SPARCIPAL_CACHE, or of the system for caches; SPARCIPAL_CACHE=off makes none. All entries
    together take at most SPARCIPAL_CACHE_SIZE (20GiB if not given): those that were used least
    recently are removed first.
    """
    import time

    from ..data.files.bytes import size_words
    from ..data.files.cache import Cache, default_folder, most_bytes

    found = Cache(default_folder() if folder is None else Path(folder))
    if what == "clear":
        note(f"cleared {size_words(found.clear())} in {found.folder}")
        return
    entries = found.entries()
    number = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    taken = size_words(sum(e.size for e in entries))
    note(f"{found.folder}: {number}, {taken} of at most {size_words(most_bytes())}")
    entries.sort(key=lambda entry: -entry.used)
    if entries:
        rows = [
            (
                size_words(e.size),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used)),
                str(e.facts["source"]),
            )
            for e in entries
        ]
        print_rows(("size", "last used", "source"), [*rows])
