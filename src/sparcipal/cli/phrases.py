"""Translate remedies for the shell: the library's `certify='full'` becomes `--certify full`."""

from __future__ import annotations

import re
from typing import Any

# These parameters have an option; a flag has the text that stands for each of its values.
OPTIONS: dict[str, str] = {
    "n_components": "--components",
    "n_nonzero_coefs": "--nonzero",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "feature_names": "--names",
    "ngram_range": "--ngrams",
    "text_field": "--text-field",
    "label_field": "--label-field",
    "token_pattern": "--token-pattern",
    "min_count": "--min-count",
    "min_length": "--min-length",
    "weighting": "--weighting",
    "containing": "--containing",
    "pattern": "--pattern",
    "columns": "--columns",
    "drop": "--drop",
    "index": "--index",
    "label": "--label",
    "one_hot": "--one-hot",
    "decimal": "--decimal",
    "thousands": "--thousands",
    "na_values": "--na",
    "missing": "--missing",
    "false_selections": "--false-selections",
    "n_resamples": "--resamples",
    "windows": "--windows",
    "folds": "--folds",
    "permutations": "--permutations",
    "within": "--within",
    "without": "--without",
    "most": "--most",
    "force": "--force",
    "scheme": "--scheme",
    "stop_words": "--stop-words",
    "min_df": "--min-df",
    "max_df": "--max-df",
    "time_limit": "--time-limit",
    "max_nodes": "--max-nodes",
    "memory_limit": "--memory-limit",
    "supports": "--supports",
    "objective": "--objective",
    "certify": "--certify",
    "method": "--method",
    "methods": "--methods",
    "rank": "--rank",
    "tol": "--tol",
    "key": "--key",
    "layer": "--layer",
    "mask_var": "--mask-var",
    "encoding": "--encoding",
    "delimiter": "--delimiter",
    "format": "--input-format",
}
FLAGS: dict[str, str] = {
    "certify=False": "--certify none",
    "mask_var=None": "--mask-var all",
    "center=False": "--no-center",
    "center=True": "--center",
    "scale=True": "--scale",
    "scale=False": "no --scale",
    "nonnegative=True": "--nonnegative",
    "uncorrelated=True": "--uncorrelated",
    "uncorrelated=False": "no --uncorrelated",
    "nonnegative=False": "no --nonnegative",
    "transpose=True": "--transpose",
    "header=True": "--header",
    "header=False": "--no-header",
    "normalize=True": "--normalize",
    "normalize=False": "--no-normalize",
}
# These remedies name no keyword.
SENTENCES: dict[str, str] = {
    "pass times=..., or read them with label_field='date'": "name the field of their dates with "
    "--label-field",
    "fit the rows that are left (sparse_pca, or Sums.of to go on from them)": "fit the rows that "
    "are left (sparcipal fit), and go on from them with sparcipal update --data",
    "times has ": "the field of --label-field has ",
    "pass covariance=X": "add --covariance",
    " (the matrix itself can be asked: covariance=result.certificate.repair['matrix'])": "",
    "pass X instead of covariance": "leave out --covariance",
    "pass a data table as X instead": "leave out --covariance for a data table",
    "pass numbers between 1 and": "ask for numbers between 1 and",
    ", or None": "",
    ", a Generator or None": "",
    "integer or None": "integer",
    "pass (A + A.T) / 2 if that is rounding": "save (A + A.T) / 2 if that is rounding",
}
_TOTAL = re.compile(r"n_nonzero_coefs(?:=\{'total': (\d+)\}|\['total'\](?:=(\S+))?)")
# The second of two values, as in "method='auto' or 'enumerate'".
_OTHER_VALUE = re.compile(r"(\b\w+='\w+') or '(\w+)'")
_GIVEN = re.compile(r"\b(\w+)=('[^']*'|\"[^\"]*\"|\[[^\]]*\]|\.\.\.|[\w.+-]*\w)")
_FLAG = re.compile("|".join(rf"\b{re.escape(flag)}\b" for flag in FLAGS))
# A name without a value is translated only if it has an underscore: others may be English words.
_BARE = re.compile(rf"\b({'|'.join(name for name in OPTIONS if '_' in name)})\b(?!\()")
# Of --include and --exclude, with the number of a list or without: not where they are verbs or
# parts of names.
_FEATURES = re.compile(r"(?<![-\w'\"])(include|exclude)\b(?:\[\d+\])?(?![-\w'\"(]| fewer| each)")
# The number of features as a limit.
_COUNTED = re.compile(r"\bn_features=(\d+)")
# Options that a format does not have, and those that it has.
_UNKNOWN = re.compile(r"\b(options? [^;]* unknown for format) '(\w+)'; ([^;]*)")
# Rows, which Python counts from 0.
_ROW = re.compile(r"\brow (\d+) \(counted from 0\)")
# Before "must be", at the start of a message, every name is that of a parameter.
_MUST = re.compile(rf"^({'|'.join(OPTIONS)})(?= must be )")


def in_the_shell(text: str) -> str:
    """Replace Python's keywords in a text by options."""
    for python, shell in SENTENCES.items():
        text = text.replace(python, shell)
    text = _OTHER_VALUE.sub(r"\1 or \2", text)
    text = _FEATURES.sub(r"--\1", _COUNTED.sub(r"the number of features, \1", text))
    text = _ROW.sub(lambda m: f"row {int(m[1]) + 1} (counted from 1, without a header)", text)
    text = _UNKNOWN.sub(_of_format, text)
    text = _MUST.sub(lambda m: OPTIONS[m[1]], text)
    text = _TOTAL.sub(lambda m: f"--nonzero-total {m[1] or m[2] or ''}".rstrip(), text)
    text = _FLAG.sub(lambda m: FLAGS[m[0]], text)
    text = _GIVEN.sub(_option, text)
    return _BARE.sub(lambda m: OPTIONS[m[1]], text)


def _of_format(found: re.Match[str]) -> str:
    """Name the options of a format as they are typed; keywords without an option are left out."""

    def quoted(text: str) -> str:
        return re.sub(r"'(\w+)'", lambda m: _typed(m[1]) or m[0], text)

    unknown, format, there = found.groups()
    if there.startswith("there are: "):
        known = [_typed(name) for name in there.removeprefix("there are: ").split(", ")]
        there = f"there are: {', '.join(sorted(filter(None, known))) or 'none'}"
    return f"{quoted(unknown)} {format}; {quoted(there)}"


def _typed(name: str) -> str:
    """Return the option that stands for a keyword; empty when there is none."""
    flag = next((FLAGS[given] for given in FLAGS if given == f"{name}=True"), "")
    return OPTIONS.get(name, flag)


def _option(given: re.Match[str]) -> str:
    name, value = given[1], given[2]
    if name not in OPTIONS:
        return given[0]
    if value == "...":
        return OPTIONS[name]
    if value.startswith("["):
        value = value[1:-1].replace(" ", "")
    return f"{OPTIONS[name]} {value.strip(chr(39) + chr(34))}"


def said_in_the_shell(result: Any) -> Any:
    """Return the result with remedies that name options; feature names and figures stay."""
    from dataclasses import replace

    certificate = result.certificate
    told = result.info.get("notes")
    info = result.info
    if isinstance(told, list):
        info = {**info, "notes": [in_the_shell(str(sentence)) for sentence in told]}
    return replace(
        result,
        info=info,
        note=in_the_shell(result.note),
        certificate=replace(certificate, message=in_the_shell(certificate.message)),
    )
