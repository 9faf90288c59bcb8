"""Texts to weights of words, for the formats that hold documents."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.parameters import Complaints, choice, flag, integer, number
from .bytes import Path_
from .reader import Parsed

OPENING = 60  # characters of a document that serve as its name
WORD = r"(?u)\b[^\W\d_]\w+\b"  # two characters or more, the first a letter
LETTER = r"(?u)\b[^\W\d_]\w*\b"  # the same with one character, where `min_length` says how many
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
        A regular expression of what a word is; by default a letter and what follows it of letters,
        digits and underscores.
    min_length : int
        Least characters of a word, whatever the pattern.
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
        with Complaints() as check:
            check(choice, "weighting", asked.weighting, WEIGHTINGS)
            check(flag, "normalize", asked.normalize)
            check(integer, "min_count", asked.min_count, 1)
            check(integer, "min_length", asked.min_length, 1)
            check(_check_frequency, "min_df", asked.min_df)
            check(_check_frequency, "max_df", asked.max_df)
            check(_check_ngrams, asked.ngram_range)
            check(_check_pattern, asked.token_pattern)
            return replace(asked, stop_words=check(_stop_words, asked.stop_words))

    def vectorizer(self, words: tuple[str, ...] | None) -> Any:
        """Return scikit-learn's CountVectorizer; given words are the only ones that it counts."""
        from sklearn.feature_extraction.text import CountVectorizer

        token: dict[str, Any] = {"token_pattern": self.token_pattern}
        if self.min_length != 2 or self.token_pattern != WORD:
            token = {"token_pattern": None, "tokenizer": self._tokens}
        return CountVectorizer(
            stop_words=self.stop_words,
            min_df=self.min_df,
            max_df=self.max_df,
            ngram_range=tuple(self.ngram_range),
            vocabulary=words,
            dtype=np.int32,
            **token,
        )

    def _tokens(self, text: str) -> list[str]:
        pattern = LETTER if self.token_pattern == WORD else self.token_pattern
        found = re.findall(pattern, text)
        return [token for token in found if len(token) >= self.min_length]

    def weighted(self, counts: Any) -> tuple[Any, np.ndarray | None]:
        """Return counts as weights, and the rareness of words where that is part of them."""
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
        """Return what was not the default, for a model."""
        usual = Counting()
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "idf"}
        out = {name: value for name, value in said.items() if value != getattr(usual, name)}
        if "ngram_range" in out:
            out["ngram_range"] = list(out["ngram_range"])
        return out


def _check_frequency(name: str, value: Any) -> None:
    """Refuse what is neither a share of the documents nor a number of them."""
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        integer(name, value, 1, "or pass a share between 0 and 1, as a float")
    else:
        number(name, value, 0.0, 1.0)


def _check_ngrams(given: Any) -> None:
    pair = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2
    if not pair:
        raise TypeError(
            f"ngram_range must be two integers, as (1, 2) for words and pairs of words, got "
            f"{given!r}"
        )
    least = integer("ngram_range[0]", given[0], 1)
    integer("ngram_range[1]", given[1], least)


def _check_pattern(given: Any) -> None:
    try:
        re.compile(given)
    except re.error as error:
        raise ValueError(f"token_pattern={given!r} is no regular expression: {error}") from error


def english_stop_words() -> frozenset[str]:
    """Return the words that "english" leaves out."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


def _stop_words(given: Any) -> Any:
    """Return None, "english" or a list; words are compared in lower case, as those of texts."""
    if given is None or (isinstance(given, str) and given == "english"):
        return given
    if isinstance(given, str):
        raise ValueError(
            f"stop_words={given!r} is unknown; pass 'english', None or a list of words"
        )
    listed = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(word, str) for word in listed):
        raise TypeError(f"stop_words must be 'english', None or a list of words, got {given!r}")
    return sorted({word.lower() for word in listed})


def count_words(
    documents: Iterable[Document],
    names: tuple[str, ...] | None,
    source: Path_,
    options: dict[str, Any],
) -> Parsed:
    """Return documents by words (CSR), with names and labels; `names` are the words to count.

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
        reason = str(error).lower()
        if "empty vocabulary" in reason:
            ways = ", ".join(_ways_to_words(counting))
            raise ValueError(f"{source}: no words are left; {ways}") from error
        if "no terms remain" in reason or "documents than min_df" in reason:
            raise ValueError(
                f"{source}: no words are left; lower min_df or raise max_df"
            ) from error
        raise
    words = tuple(map(str, vectorizer.get_feature_names_out()))
    if names is None and counting.min_count > 1:
        kept = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() >= counting.min_count)
        if kept.size == 0:
            raise ValueError(f"{source}: no words are left; lower min_count")
        counts, words = sp.csr_array(counts[:, kept]), tuple(words[j] for j in kept)
    notes = () if names is None else _without_words(counts)
    weights, idf = counting.weighted(counts)
    told = None if all(label is None for label in labels) else tuple(x or "" for x in labels)
    texts = {"options": counting.record(), **({} if idf is None else {"idf": idf})}
    return Parsed(weights, words, tuple(samples), labels=told, texts=texts, notes=notes)


def _ways_to_words(counting: Counting) -> Iterator[str]:
    """Yield what lets in words where none was found; frequencies were not looked at yet."""
    if counting.min_length > 1:
        yield f"lower min_length={counting.min_length}"
    if counting.stop_words is not None:
        yield "drop stop_words"
    yield "give another token_pattern" if counting.ngram_range[0] == 1 else "lower ngram_range"


def _without_words(counts: Any) -> tuple[str, ...]:
    """Say how many documents have none of the words that are counted."""
    empty = int((np.diff(counts.indptr) == 0).sum())
    if not empty:
        return ()
    have = "has" if empty == 1 else "have"
    return (f"{empty} of {counts.shape[0]} documents {have} none of the {counts.shape[1]} words",)


def _wanted(counting: Counting, vectorizer: Any) -> Callable[[str], bool] | None:
    """Return whether a text contains the word that documents must contain; None for all texts."""
    if counting.containing is None:
        return None
    word = counting.containing.lower()
    prepare, tokens = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    return lambda text: word in tokens(prepare(text))


def name_of(text: str, given: Any) -> str:
    """Return what a field says a document is called, or its first words where it says nothing."""
    name = "" if given is None else str(given).strip()
    return name or opening(text)


def opening(text: str) -> str:
    """Return the first words of a text, which name it."""
    start = " ".join(text[: 4 * OPENING].split())
    if len(start) <= OPENING:
        return start
    whole = start[:OPENING].rpartition(" ")[0] or start[:OPENING]
    return f"{whole} \N{HORIZONTAL ELLIPSIS}"
