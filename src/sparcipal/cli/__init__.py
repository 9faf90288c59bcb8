"""The command line; see group.py."""

from .group import main

__all__ = ["main"]
