"""Several commands share these options, which are turned into a Table and into keywords."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable
from typing import Any

import click

from ..search.registry import METHODS
from .help import ORDER, option
from .output import note
from .phrases import in_the_shell
from .values import FILE, Delimiter, Encoding, Frequency, Names, StopWords

F = Callable[..., Any]
QUESTION, EFFORT, TABLES, TEXTS, FILES, OUTPUT = ORDER
# As in data/missing.py and data/files/documents.py, which are too heavy for --help.
RULES = ("error", "rows", "mean", "median", "pairwise")
WEIGHTINGS = ("counts", "presence", "log", "tfidf")


def complete_methods(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """Complete names of methods for the shell, also after a comma."""
    *before, last = incomplete.split(",")
    return [",".join([*before, name]) for name in sorted(METHODS) if name.startswith(last)]


def complete_cache(ctx: Any, param: Any, incomplete: str) -> list[str]:
    return [word for word in ("beside", "off") if word.startswith(incomplete)]


def _added(command: F, *some: Any) -> F:
    for one in reversed(some):
        command = one(command)
    return command


def covariance_option(command: F) -> F:
    """Add the option that says that SOURCE is no table of samples."""
    return option(FILES, "--covariance", is_flag=True, help="SOURCE is a covariance matrix.")(
        command
    )


def source_options(command: F) -> F:
    """Add the options that say how to read SOURCE."""
    return _added(
        command,
        option(FILES, "--input-format", metavar="NAME", help="Instead of what the name says."),
        option(FILES, "--names", type=FILE, metavar="FILE", help="Feature names, one per line."),
        option(FILES, "--key", help="Which array of an .npz file."),
        option(FILES, "--layer", help="Which layer of an .h5ad file."),
        option(FILES, "--mask-var", metavar="NAME|all",
               help="Genes of an .h5ad file: a column of var; highly_variable if it is there."),
        option(FILES, "--transpose/--no-transpose", default=None,
               help="A .csv, .tsv or Matrix Market file with features in rows."),
        option(FILES, "--encoding", type=Encoding(), help="Of text that is not utf-8."),
        option(FILES, "--delimiter", type=Delimiter(),
               help="What separates the fields of a .csv file, if not what its lines suggest."),
        option(FILES, "--cache", metavar="WHERE", shell_complete=complete_cache,
               help="Keep parsed text: a folder, beside (the file), or off."),
    )  # fmt: skip


def row_options(command: F) -> F:
    """Add the options that say which columns of a table name and label its rows."""
    return _added(
        command,
        option(TABLES, "--index", metavar="NAME", help="The column or field that names the rows."),
        option(TABLES, "--label", metavar="NAME",
               help="A column kept beside the features, for pictures and scores."),
        option(TABLES, "--header/--no-header", default=None,
               help="Whether the first line names the columns, if not as it looks."),
        option(TABLES, "--decimal", type=click.Choice([",", "."]), help="What parts decimals."),
        option(TABLES, "--thousands", type=click.Choice([",", "."]), help="What parts thousands."),
        option(TABLES, "--na", "--na-values", "na_values", type=Names(),
               help="What stands for a missing entry, beside NA, NaN, null, ? and nothing."),
    )  # fmt: skip


def column_options(command: F) -> F:
    """Add the options that choose the columns of a table."""
    return _added(
        command,
        option(TABLES, "--columns", type=Names(),
               help="Use these: names, patterns (gene*), ranges (q1:q25)."),
        option(TABLES, "--drop", type=Names(), help="Leave out these, in the same way."),
        option(TABLES, "--one-hot", type=Names(), help="Encode these categories."),
        row_options,
        option(TABLES, "--missing", type=click.Choice(RULES), default="error", show_default=True,
               help="Missing entries: refuse, leave out their rows, fill, or use pairs."),
    )  # fmt: skip


def document_options(command: F) -> F:
    """Add the options that say how to count the words of documents."""
    return _document_options(command)


def text_options(command: F) -> F:
    """Add the same to a command of texts alone, where --label and --index can mean nothing else."""
    index = option(TEXTS, "--index", metavar="NAME", help="The field that names the texts.")
    return _added(command, lambda inner: _document_options(inner, "--label"), index)


def _document_options(command: F, *label: str) -> F:
    return _added(
        command,
        option(TEXTS, "--text-field", metavar="NAME",
               help="The field of a .jsonl or .csv file that holds the text."),
        option(TEXTS, "--label-field", *label, "label_field", metavar="NAME",
               help="The field that holds a label of the text, such as its date."),
        option(TEXTS, "--stop-words", type=StopWords(), metavar="english|none|FILE",
               help="Words not to count: english if not given; a file with one per line instead "
               "of these; english,FILE for both."),
        option(TEXTS, "--min-df", type=Frequency(counts=True),
               help="Least documents (or share) with a word."),
        option(TEXTS, "--max-df", type=Frequency(counts=False),
               help="Largest share of documents with a word."),
        option(TEXTS, "--min-count", type=click.IntRange(min=1), metavar="INTEGER",
               help="Least occurrences of a word in all documents."),
        option(TEXTS, "--min-length", type=click.IntRange(min=1), metavar="INTEGER",
               help="Least characters of a word; 2 if not given."),
        option(TEXTS, "--token-pattern", metavar="REGEX",
               help="What a word is; a letter, and letters, digits and _ if not given."),
        option(TEXTS, "--pattern", metavar="PATTERN",
               help="Which files of a folder are texts: '*.txt'; all if not given."),
        option(TEXTS, "--containing", metavar="WORD", help="Only documents with this word."),
        option(TEXTS, "--ngrams", type=click.IntRange(min=1), metavar="INTEGER",
               help="Count also sequences of words; 1 if not given."),
        option(TEXTS, "--weighting", type=click.Choice(WEIGHTINGS),
               help="Of a word in a document; if not given, tfidf for topics and trends, counts "
               "elsewhere."),
        option(TEXTS, "--normalize/--no-normalize", default=None,
               help="Whether long documents count no more than short ones; if not given, for "
               "topics and trends only."),
    )  # fmt: skip


def question_options(command: F) -> F:
    """Add the options that say what to look for and how hard to prove it."""
    return _added(
        command,
        option(QUESTION, "-k", "--components", type=int, default=1, show_default=True,
               help="How many components."),
        answer_options,
    )  # fmt: skip


def answer_options(command: F) -> F:
    """Add the options of the question beside the number of components."""
    return _answer_options(
        command,
        option(QUESTION, "--include", multiple=True, metavar="NAME,NAME,...",
               help="Features a component must use; once for each component."),
        option(EFFORT, "--rank", type=int, help="Rank of the sketch, for methods that use one."),
    )  # fmt: skip


def grid_options(command: F) -> F:
    """Add them for several numbers of components, which have no anchors and one method."""
    return _answer_options(command)


def _answer_options(command: F, *more: F) -> F:
    certify = click.Choice(["fast", "full", "none"])
    return _added(
        command,
        option(QUESTION, "--nonnegative", is_flag=True, help="Loadings that are not negative."),
        option(QUESTION, "--supports", default="disjoint", show_default=True,
               type=click.Choice(["disjoint", "free", "orthogonal", "common"]),
               help="What components share: no feature, any, any while they are orthogonal, or "
               "all."),
        option(QUESTION, "--objective", type=click.Choice(["sum", "adjusted"]),
               help="Add variances, or what each component explains beyond those before it in the "
               "best order (the default for free supports)."),
        option(QUESTION, "--uncorrelated", is_flag=True, help="Scores that are uncorrelated."),
        option(QUESTION, "--exclude", multiple=True, metavar="NAME,NAME,...",
               help="Features that may not be used; names, patterns (gene*) or numbers."),
        option(QUESTION, "--center/--no-center", default=True, show_default=True,
               help="Subtract the mean of each feature."),
        option(QUESTION, "--scale", is_flag=True, help="Divide by the standard deviation."),
        option(EFFORT, "--certify", type=certify, default="fast", show_default=True,
               help="How hard to prove: a few seconds, to the end, or hardly."),
        option(EFFORT, "--tol", type=float, default=1e-6, show_default=True,
               help="The relative gap that counts as optimal."),
        *more,
        option(EFFORT, "--max-nodes", type=int, help="Limit on the branch and bound."),
        option(EFFORT, "--time-limit", type=float, metavar="SECONDS",
               help="Stop then, with the best answer so far and its gap."),
        option(EFFORT, "-j", "--jobs", type=int, help="Threads; -1 is every core."),
        option(EFFORT, "--seed", type=int, default=0, show_default=True),
    )  # fmt: skip


def keywords(options: dict[str, Any]) -> dict[str, Any]:
    """Return the Python keywords that the question options stand for."""
    certify = options["certify"]
    return {
        "n_components": options["components"],
        "nonnegative": options["nonnegative"],
        "supports": options["supports"],
        "objective": options["objective"],
        "uncorrelated": options["uncorrelated"],
        "center": options["center"],
        "scale": options["scale"],
        "certify": False if certify == "none" else certify,
        "tol": options["tol"],
        "rank": options.get("rank"),
        "max_nodes": options["max_nodes"],
        "time_limit": options["time_limit"],
        "n_jobs": options["jobs"],
        "random_state": options["seed"],
        "missing": options.get("missing", "error"),
    }


def constraints(options: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return `include=` and `exclude=`; what is no name of a feature may be its number."""
    names = data["feature_names"] if "feature_names" in data else data["X"].feature_names
    known = frozenset(names or ())

    def features(texts: Iterable[str]) -> list[Any]:
        """Keep what is named twice, to be refused."""
        words = [
            word.strip()
            for text in texts
            for word in (
                [text] if text in known else next(csv.reader([text], skipinitialspace=True), [])
            )
        ]
        return [
            int(word) if word.isdecimal() and word not in known else word for word in words if word
        ]

    given = options.get("include", ())
    k = options["components"]
    if len(given) > max(k, 1):
        raise click.UsageError(
            f"--include is given {len(given)} times for --components {k}; give it once for each "
            "component, and all features of one with commas between them"
        )
    include = features(given) if k == 1 else [features([text]) for text in given]
    return {"include": include or None, "exclude": features(options["exclude"]) or None}


def distinct_files(source: str | None, options: dict[str, Any], **others: str) -> None:
    """Refuse, before the work, to overwrite an input or to write two outputs to one file."""
    read_from = {"SOURCE": source, "--names": options.get("names")}
    read_from |= {name.upper(): value for name, value in others.items()}
    files = {name: os.path.realpath(value) for name, value in read_from.items() if value}
    for name in ("out", "report", "plot"):
        value = options.get(name)
        if not value:
            continue
        target = {f"--{name}": os.path.realpath(value)}
        if name == "out" and not value.endswith(".npy"):
            target["the proof of --out"] = os.path.realpath(f"{value}.proof")
        for new, path in target.items():
            same = next((old for old, other in files.items() if other == path), None)
            if same:
                raise click.UsageError(
                    f"{new} would overwrite {same}: both are {path}; choose another name"
                )
        files |= target


def read_table(source: str, options: dict[str, Any], callback: F | None = None) -> Any:
    """Read SOURCE as a Table; only options that were given are passed on, so that a format without
    them refuses them."""
    from ..data import inputs
    from ..data.files.formats import reader_for
    from ..data.passes import MEMORY_LIMIT

    cache = options.get("cache")
    recorded = options.get("recorded", {})
    asked = {**recorded, **_given(source, options, recorded)}
    format = options.get("input_format")
    if "aside" in asked and not reader_for(source, format, asked).tabular:
        del asked["aside"]
    limit = options.get("memory_limit")
    how = inputs.Reading(
        format=format,
        feature_names=options.get("names"),
        cache=False if cache == "off" else cache,
        callback=callback,
        memory_limit=MEMORY_LIMIT if limit is None else limit,
    )
    table = inputs.read_table(source, how, **asked)
    if not options.get("told"):  # the result says it
        for sentence in table.notes:
            note(in_the_shell(sentence))
    return table


# Options that are keywords of `read` under the same name.
READING = (
    "key", "layer", "mask_var", "transpose", "columns", "drop", "index", "label", "one_hot",
    "decimal", "thousands", "na_values", "text_field", "label_field", "stop_words", "min_df",
    "max_df", "min_count", "min_length", "token_pattern", "containing", "weighting", "normalize",
    "encoding", "delimiter", "header", "pattern",
)  # fmt: skip


def _given(source: str, options: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of `read` that the options stand for, beside those that are recorded."""
    from ..data.files.formats import reader_for

    given = {name: options[name] for name in READING if options.get(name) not in (None, ())}
    format = options.get("input_format") or recorded.get("format")
    if "label" in given and reader_for(source, format, {**recorded, **given}).counts_words:
        given.setdefault("label_field", given.pop("label"))  # the name that it has for tables
    if given.get("stop_words") == "none":
        given["stop_words"] = None
    if given.get("mask_var") == "all":
        given["mask_var"] = None
    if options.get("ngrams") is not None:
        given["ngram_range"] = (1, options["ngrams"])
    if options.get("covariance"):
        given["aside"] = False
    return given


def with_reading(result: Any, source: str, options: dict[str, Any]) -> Any:
    """Record the name of SOURCE and, when that was not the default, how it was read."""
    from dataclasses import replace

    if source != "-":
        result = replace(result, info={**result.info, "source": source})
    given = _given(source, options, {})
    given.pop("aside", None)
    if "ngram_range" in given:
        given["ngram_range"] = list(given["ngram_range"])
    if options.get("input_format") and source != "-":
        given["format"] = options["input_format"]
    return replace(result, settings={**result.settings, "read": given}) if given else result


def as_for_the_fit(result: Any, source: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, completed by those that the model records of the fit."""
    recorded = result.settings.get("read", {})
    if not isinstance(recorded, dict):
        raise ValueError(f"the model is damaged: its entry read is {recorded!r}")
    from ..data.columns import OPTIONS
    from ..data.files.formats import format_of, reader_for

    format = options["input_format"] or recorded.get("format") or format_of(source)
    given = _given(source, options, recorded)
    reader = reader_for(source, format, {**recorded, **given})
    keywords = {}
    for name, types in reader.options.items():
        if name in recorded:
            if not isinstance(recorded[name], types):
                raise ValueError(f"the model is damaged: its entry {name} is {recorded[name]!r}")
            keywords[name] = tuple(recorded[name]) if types == (list,) else recorded[name]
    turned = {**keywords, **given}.get("transpose")
    if turned and not recorded.get("transpose"):  # columns of the fit are lines here
        keywords = {name: value for name, value in keywords.items() if name not in OPTIONS}
    if result.info.get("texts") and reader.tabular:
        _check_is_of_words(result, source, reader.name, options)
    silent = {name: value for name, value in keywords.items() if name not in given}
    if silent:
        note(f"read as for the fit: {' '.join(_said(*item) for item in silent.items())}")
    if reader.tabular and result.feature_names and "one_hot" not in keywords and not turned:
        # The columns of the model by name, whatever else the table has.
        keywords.pop("drop", None)
        keywords["columns"] = tuple(result.feature_names)
        keywords["empty"] = True  # new samples may lack all entries of a column
    if "mask_var" in reader.options and result.feature_names:
        keywords["mask_var"] = None  # the genes of the model are found by their names
    if "label_needed" in reader.options and ("label" in silent or "label_field" in silent):
        keywords["label_needed"] = False
    if "index_needed" in reader.options and "index" in silent:
        keywords["index_needed"] = False
    return {**options, "input_format": reader.name, "recorded": keywords}


def _check_is_of_words(result: Any, source: str, format: str, options: dict[str, Any]) -> None:
    """Refuse a table without the words of the model as columns: its texts may be in one column."""
    from ..data.files.csv import head_of
    from ..data.notes import listed

    known = format in ("csv", "tsv") and source != "-"
    head = head_of(source, options["encoding"] or "utf-8") if known else []
    lacking = [repr(word) for word in result.feature_names or () if word not in head]
    if head and lacking:
        raise ValueError(
            f"the model is of texts, and {source} has no columns {listed(lacking)}; if one of its "
            f"columns holds texts ({', '.join(map(repr, head[:12]))}), name it with --text-field"
        )


def _said(name: str, value: Any) -> str:
    """Return a keyword of `read` as the option that stands for it."""
    if name == "ngram_range":
        name, value = "ngrams", " to ".join(map(str, value)).removeprefix("1 to ")
    name = {"na_values": "na"}.get(name, name)
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if name == "stop_words" and value is None:
        value = "none"
    if value is False:
        return f"--no-{word[2:]}"
    return word if value is True else f"{word} {'tab' if value == chr(9) else value}"


def data_keywords(
    source: str, options: dict[str, Any], callback: F | None = None
) -> dict[str, Any]:
    """Return `X=`, or `covariance=` with its names, as sparse_pca and verify take them."""
    table = read_table(source, options, callback)
    if not options.get("covariance"):
        return {"X": table}
    matrix = table.X.toarray() if hasattr(table.X, "toarray") else table.X
    return {"covariance": matrix, "feature_names": table.feature_names}


def or_error(read: F, *args: Any) -> dict[str, Any]:
    """Return the data that `read` gives; where it cannot, its error is raised by the function that
    takes X, beside all that is wrong with the options."""
    try:
        found: dict[str, Any] = read(*args)
    except ValueError as error:
        return {"X": _Unread(error)}
    return found


class _Unread:
    """Blocks of rows that cannot be read, and why."""

    feature_names = None

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self) -> Any:
        raise self._error
