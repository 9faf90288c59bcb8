"""The public names and their parameters: what changes here changes for every user.

After a change that is meant: `pytest tests/properties/test_api.py --update-golden`, an entry in
CHANGELOG.md, and the deprecation policy of CONTRIBUTING.md for what goes away.
"""

from __future__ import annotations

import inspect
from typing import Any

import sparcipal


def parameters(function: Any) -> str:
    """Names, kinds and defaults; annotations may be written in several ways."""
    shown, keyword_only = [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            shown.append("*")
            keyword_only = True
        if p.name == "self":
            continue
        if p.default is p.empty:
            shown.append({p.VAR_KEYWORD: "**", p.VAR_POSITIONAL: "*"}.get(p.kind, "") + p.name)
        else:
            plain = p.default is None or isinstance(p.default, bool | int | float | str)
            shown.append(f"{p.name}={p.default!r}" if plain else f"{p.name}=...")
    return f"({', '.join(shown)})"


def described(name: str) -> list[str]:
    thing = getattr(sparcipal, name)
    if not inspect.isclass(thing):
        return [name + parameters(thing)]
    lines = [name + ("" if issubclass(thing, str) else parameters(thing))]
    for member in sorted(m for m in dir(thing) if not m.startswith("_")):
        owner = next(c for c in thing.__mro__ if member in vars(c))
        if not owner.__module__.startswith("sparcipal"):
            continue
        value = getattr(thing, member)
        lines.append(f"    {member}{parameters(value) if callable(value) else ''}")
    return lines


def test_public_names_and_parameters_are_the_documented_ones(golden):
    golden("api.txt", "\n".join(line for name in sparcipal.__all__ for line in described(name)))


def test_commands_and_their_options_are_the_documented_ones(golden):
    from sparcipal.cli import main

    lines = []
    for name, command in main.commands.items():
        options = sorted(o for p in command.params for o in p.opts if o.startswith("--"))
        lines.append(f"{name} {' '.join(options)}")
    golden("commands.txt", "\n".join(lines))
