"""Texts to counts: a folder of files, JSON lines, or one document per line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Path_, decode, decoded_lines, open_bytes

Read = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples
OPENING = 60  # characters of a document that serve as its name


def read_folder(
    source: Path_, names: Any, *, pattern: str = "**/*", encoding: str = "utf-8", **counting: Any
) -> Read:
    """Every file of the folder that matches is a document; hidden files and folders are not."""
    folder = Path(source)
    paths = sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )
    if not paths:
        raise ValueError(f"{source}: no file matches pattern={pattern!r}")
    samples = tuple(str(path.relative_to(folder)) for path in paths)
    return (*count_words(_texts(paths, encoding), names, source, **counting), samples)


def read_jsonl(
    source: Path_, names: Any, *, text_field: str = "text", encoding: str = "utf-8", **counting: Any
) -> Read:
    """Every line is a JSON string, or an object whose `text_field` is the document."""
    return _of_lines(_json_texts(source, text_field, encoding), names, source, counting)


def _json_texts(source: Path_, text_field: str, encoding: str) -> Iterator[str]:
    for number, line in decoded_lines(source, encoding):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source}, line {number}: not JSON ({error})") from error
        text = entry.get(text_field) if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            raise ValueError(
                f"{source}, line {number}: no text in {text_field!r}; name its field: text_field"
            )
        yield text


def read_lines(source: Path_, names: Any, *, encoding: str = "utf-8", **counting: Any) -> Read:
    """Every line that is not blank is a document."""
    texts = (line for _, line in decoded_lines(source, encoding) if line.strip())
    return _of_lines(texts, names, source, counting)


def count_words(
    texts: Any,
    names: tuple[str, ...] | None,
    source: Path_,
    *,
    stop_words: Any = None,
    min_df: float = 1,
    max_df: float = 1.0,
    ngram_range: tuple[int, int] = (1, 1),
) -> tuple[Any, tuple[str, ...]]:
    """Documents by words (CSR) and the words, by scikit-learn's CountVectorizer.

    Given `names` are the vocabulary: only these words are counted.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        stop_words=stop_words,
        min_df=min_df,
        max_df=max_df,
        ngram_range=ngram_range,
        vocabulary=names,
        dtype=np.int32,
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        reasons = ("empty vocabulary", "no terms remain", "documents than min_df")
        if any(reason in str(error).lower() for reason in reasons):
            raise ValueError(
                f"{source}: no words are left; lower min_df, raise max_df or drop stop_words"
            ) from error
        raise
    return sp.csr_array(counts), tuple(map(str, vectorizer.get_feature_names_out()))


def _texts(paths: list[Path], encoding: str) -> Iterator[str]:
    for path in paths:
        with open_bytes(path) as stream:
            yield decode(stream.read(), path, encoding)


def _of_lines(texts: Iterator[str], names: Any, source: Path_, counting: dict[str, Any]) -> Read:
    """Counts of texts that pass one by one; only their openings are held, as names."""
    first = next(texts, None)
    if first is None:
        raise ValueError(f"{source}: no documents in it")
    samples: list[str] = []

    def passing() -> Iterator[str]:
        for text in itertools.chain([first], texts):
            samples.append(" ".join(text[: 4 * OPENING].split())[:OPENING])
            yield text

    return (*count_words(passing(), names, source, **counting), tuple(samples))
