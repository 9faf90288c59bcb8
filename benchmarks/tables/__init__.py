"""The tables and figures of the papers, run again."""
