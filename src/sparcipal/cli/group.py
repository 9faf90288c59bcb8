"""The command line writes data to stdout and words to stderr.

Heavy imports are inside the commands, so that --help is fast.
"""

from __future__ import annotations

import warnings
from typing import Any

import click

from .. import __version__
from .caching import cache
from .inspecting import alternatives, demo, doctor, show, transform, verify
from .output import INCOMPLETE, note
from .phrases import in_the_shell
from .questions import choose, explain, stability, trends, update
from .solving import compare, fit, path, topics

STOPPED = 3  # the exit code of a CSV that holds less than was asked for
INTERRUPTED = 130  # what shells expect of a process that Ctrl-C has ended


class _Group(click.Group):
    """This group prints an error as one sentence with the remedy; `--debug` shows the traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _as_note
                done = super().invoke(ctx)
                if ctx.meta.get(INCOMPLETE):
                    ctx.exit(STOPPED)
                return done
        except KeyboardInterrupt as error:
            note(str(error) or "stopped before there was an answer")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            raise  # the reader of stdout has closed it: click exits silently
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(_sentence(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use, not of the alphabet


def _as_note(message: Warning | str, *place: Any, **more: Any) -> None:
    """Show a warning as a sentence: the line of code it came from is no use in the shell."""
    note(in_the_shell(str(message)))


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory ({error}); use fewer features or a machine with more"
    from ..report.words import visible

    text = " ".join(str(error).split()) or type(error).__name__
    return in_the_shell(visible(text))


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="sparcipal")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def main(debug: bool) -> None:
    """PCA with few nonzero loadings, and a proof of how good they are.

    \b
    sparcipal demo                          topics of the installed packages' docstrings
    sparcipal fit data.csv -k 3 -s 5        three components of five features
    sparcipal topics texts/ -k 8 -s 10      eight topics of ten words
    sparcipal verify model.json data.csv    recheck a saved certificate against the data

    A SOURCE is a table (.csv, .tsv, .parquet), a matrix (.npy, .npz, .mtx, .svmlight, .h5ad), a
    bag of words (docword.*.txt), a folder of text, a file with a document per line (.txt, .jsonl),
    each gzipped or not, or - for standard input.

    Exit code 0: done, or stopped by Ctrl-C or --time-limit with what is known so far, which is then
    marked as incomplete. 1: an error, 2: a wrong option. 3: CSV, which has no place for such a
    mark, of a run that was stopped; stderr says why. 130: Ctrl-C before anything was known, or
    twice.
    """


for _command in (
    fit,
    topics,
    path,
    trends,
    choose,
    stability,
    compare,
    alternatives,
    explain,
    update,
    verify,
    transform,
    show,
    demo,
    cache,
    doctor,
):
    main.add_command(_command)
