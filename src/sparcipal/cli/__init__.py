"""This package is the command line; group.py holds its entry point."""

from .group import main

__all__ = ["main"]
