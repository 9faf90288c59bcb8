"""`python -m sparcipal` is the command line."""

from .cli import main

main(prog_name="sparcipal")
