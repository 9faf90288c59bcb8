"""Readers of files, one file per format."""
