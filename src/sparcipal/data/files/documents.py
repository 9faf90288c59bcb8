"""Texts to counts of words, for the formats that hold documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Path_
from .reader import Parsed

OPENING = 60  # characters of a document that serve as its name
# The options of `count_words`, for the records of the readers.
COUNTING: dict[str, tuple[type, ...]] = {
    "stop_words": (str,),
    "min_df": (int, float),
    "max_df": (int, float),
    "ngram_range": (list,),
}


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


def count_lines(
    texts: Iterator[str], names: Any, source: Path_, counting: dict[str, Any]
) -> Parsed:
    """Count texts that arrive one by one; only their openings are held in memory, as names."""
    first = next(texts, None)
    if first is None:
        raise ValueError(f"{source}: no documents in it")
    samples: list[str] = []

    def passing() -> Iterator[str]:
        for text in itertools.chain([first], texts):
            samples.append(" ".join(text[: 4 * OPENING].split())[:OPENING])
            yield text

    return Parsed(*count_words(passing(), names, source, **counting), tuple(samples))
