"""Texts to weights of words, for the formats that hold documents."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.parameters import choice, flag, integer
from .bytes import Path_
from .reader import Parsed

OPENING = 60  # characters of a document that serve as its name
WORD = r"(?u)\b[^\W\d_]\w+\b"  # two characters or more, the first a letter
WEIGHTINGS = ("counts", "presence", "log", "tfidf")
# The options of `count_words`, for the records of the readers.
COUNTING: dict[str, tuple[type, ...]] = {
    "stop_words": (str, list, type(None)),
    "min_df": (int, float),
    "max_df": (int, float),
    "min_count": (int,),
    "ngram_range": (list,),
    "token_pattern": (str,),
    "min_length": (int,),
    "containing": (str,),
    "weighting": (str,),
    "normalize": (bool,),
    "idf": (np.ndarray,),
}


@dataclass(frozen=True)
class Document:
    """A text, its name, and a label such as its date."""

    text: str
    name: str
    label: str | None = None


@dataclass(frozen=True)
class Counting:
    """How words are counted and weighted.

    Parameters
    ----------
    stop_words : "english", None or list of str
        Words that are not counted.
    min_df, max_df : int or float
        Documents that a word must and may be in, as a number or a share.
    min_count : int
        How often a word must occur in all documents together.
    ngram_range : (int, int)
        Sequences of so many words are counted.
    token_pattern : str
        A regular expression of what a word is.
    min_length : int
        Characters of a word.
    containing : str
        Only documents with this word are read.
    weighting : "counts", "presence", "log" or "tfidf"
        The count, 1 for a word that occurs, log(1 + count), or the count times the logarithm of
        how rare the word is, ln((1 + n) / (1 + documents with it)) + 1.
    normalize : bool
        Whether a document is divided by the length of its vector, so that long ones count no more.
    idf : ndarray
        For "tfidf", the rareness of each word in other documents: those of a fit.
    """

    stop_words: Any = "english"
    min_df: float = 1
    max_df: float = 1.0
    min_count: int = 1
    ngram_range: tuple[int, int] = (1, 1)
    token_pattern: str = WORD
    min_length: int = 2
    containing: str | None = None
    weighting: str = "counts"
    normalize: bool = False
    idf: np.ndarray | None = None

    @staticmethod
    def of(options: dict[str, Any]) -> Counting:
        asked = Counting(**options)
        choice("weighting", asked.weighting, WEIGHTINGS)
        flag("normalize", asked.normalize)
        integer("min_count", asked.min_count, 1)
        integer("min_length", asked.min_length, 1)
        try:
            re.compile(asked.token_pattern)
        except re.error as error:
            raise ValueError(
                f"token_pattern={asked.token_pattern!r} is no regular expression: {error}"
            ) from error
        return asked

    def vectorizer(self, words: tuple[str, ...] | None) -> Any:
        """Scikit-learn's CountVectorizer; given words are the only ones that it counts."""
        from sklearn.feature_extraction.text import CountVectorizer

        token: dict[str, Any] = {"token_pattern": self.token_pattern}
        if self.min_length != 2 or self.token_pattern != WORD:
            token = {"token_pattern": None, "tokenizer": self._tokens}
        stop = self.stop_words
        return CountVectorizer(
            stop_words=list(stop) if isinstance(stop, tuple | list | set | frozenset) else stop,
            min_df=self.min_df,
            max_df=self.max_df,
            ngram_range=tuple(self.ngram_range),
            vocabulary=words,
            dtype=np.int32,
            **token,
        )

    def _tokens(self, text: str) -> list[str]:
        found = re.findall(self.token_pattern, text)
        return [token for token in found if len(token) >= self.min_length]

    def weighted(self, counts: Any) -> tuple[Any, np.ndarray | None]:
        """Counts as weights, and the rareness of words where that is part of them."""
        idf = None
        if self.weighting == "presence":
            counts.data[:] = 1
        elif self.weighting == "log":
            counts = counts.astype(np.float64)
            counts.data = np.log1p(counts.data)
        elif self.weighting == "tfidf":
            idf = self._rareness(counts)
            counts = counts.astype(np.float64)
            counts.data *= idf[counts.indices]
        if self.normalize:
            counts = counts.astype(np.float64)
            lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
            counts.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(counts.indptr))
        return counts, idf

    def _rareness(self, counts: Any) -> np.ndarray:
        n, p = counts.shape
        if self.idf is None:
            documents = np.bincount(counts.indices, minlength=p)
            return np.log((1.0 + n) / (1.0 + documents)) + 1.0
        if self.idf.shape != (p,) or not np.isfinite(self.idf).all():
            raise ValueError(f"idf has shape {self.idf.shape} for {p} words; pass one per word")
        return np.asarray(self.idf, dtype=np.float64)

    def record(self) -> dict[str, Any]:
        """What was not the default, for a model."""
        usual = Counting()
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "idf"}
        out = {name: value for name, value in said.items() if value != getattr(usual, name)}
        for name in ("ngram_range", "stop_words"):
            if isinstance(out.get(name), tuple | set | frozenset):
                out[name] = list(out[name])
        return out


def count_words(
    documents: Iterable[Document],
    names: tuple[str, ...] | None,
    source: Path_,
    options: dict[str, Any],
) -> Parsed:
    """Documents by words (CSR), their names and labels. Given `names` are the words to count.

    Documents may arrive one by one; only their names are held in memory.
    """
    counting = Counting.of(options)
    given = iter(documents)
    first = next(given, None)
    if first is None:
        raise ValueError(f"{source}: no documents in it")
    samples: list[str] = []
    labels: list[str | None] = []
    vectorizer = counting.vectorizer(names)
    wanted = _wanted(counting, vectorizer)

    def passing() -> Iterator[str]:
        for document in itertools.chain([first], given):
            if wanted is None or wanted(document.text):
                samples.append(document.name)
                labels.append(document.label)
                yield document.text

    try:
        counts = sp.csr_array(vectorizer.fit_transform(passing()))
    except ValueError as error:
        if counting.containing is not None and not samples:
            raise ValueError(f"{source}: no document contains {counting.containing!r}") from error
        reasons = ("empty vocabulary", "no terms remain", "documents than min_df")
        if any(reason in str(error).lower() for reason in reasons):
            raise ValueError(
                f"{source}: no words are left; lower min_df, raise max_df or drop stop_words"
            ) from error
        raise
    words = tuple(map(str, vectorizer.get_feature_names_out()))
    if names is None and counting.min_count > 1:
        kept = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() >= counting.min_count)
        if kept.size == 0:
            raise ValueError(f"{source}: no words are left; lower min_count")
        counts, words = sp.csr_array(counts[:, kept]), tuple(words[j] for j in kept)
    weights, idf = counting.weighted(counts)
    told = None if all(label is None for label in labels) else tuple(x or "" for x in labels)
    texts = {"options": counting.record(), **({} if idf is None else {"idf": idf})}
    return Parsed(weights, words, tuple(samples), labels=told, texts=texts)


def _wanted(counting: Counting, vectorizer: Any) -> Callable[[str], bool] | None:
    """Whether a text contains the word that documents must contain; None for all texts."""
    if counting.containing is None:
        return None
    word = counting.containing.lower()
    prepare, tokens = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    return lambda text: word in tokens(prepare(text))


def opening(text: str) -> str:
    """The first characters of a text, which name it."""
    return " ".join(text[: 4 * OPENING].split())[:OPENING]
