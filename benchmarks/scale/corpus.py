"""A corpus that looks like news, of any size, written as a gzipped UCI bag of words.

Word frequencies follow Zipf and Mandelbrot (no stop words at the head), documents differ in length,
every document speaks of one or two of the planted topics, and words come in bursts: who says a word
once is likely to say it again. The same seed gives the same bytes before compression.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numba import njit

TOPICS = 60
TOPIC_WORDS = 25
BATCH = 2000  # documents written together


@dataclass(frozen=True)
class Size:
    """Documents, words, and the mean number of words (with repetitions) of a document."""

    documents: int
    words: int
    length: float = 300.0


SIZES = {
    "small": Size(20_000, 20_000, 150.0),
    "nytimes": Size(300_000, 102_660, 340.0),
    "pubmed": Size(8_200_000, 141_043, 67.6),
}


def at(folder: Path, size: Size) -> Path:
    """The corpus of this size in `folder`, written when it is not there yet."""
    home = folder / f"{size.documents}x{size.words}x{size.length:.0f}"
    if not (home / "docword.txt.gz").exists():
        home.mkdir(parents=True, exist_ok=True)
        write(home, size)
    return home / "docword.txt.gz"


def write(folder: Path, size: Size, seed: int = 0) -> Path:
    """docword.txt.gz and vocab.txt in `folder`; the path of the first."""
    path = folder / "docword.txt.gz"
    rng = np.random.default_rng(seed)
    tables = _tables(size, rng)
    body, whole = folder / "body.gz", folder / "whole.gz"
    entries = 0
    with _compressed(body) as stream:
        for block, count in _batches(size, tables, seed):
            stream.write(block)
            entries += count
    # A gzip file may have several members: the header comes first, its figures are known last.
    with open(whole, "wb") as out, open(body, "rb") as rest:
        out.write(gzip.compress(f"{size.documents}\n{size.words}\n{entries}\n".encode()))
        while chunk := rest.read(1 << 24):
            out.write(chunk)
    body.unlink()
    names = "\n".join(_names(size.words, tables)) + "\n"
    (folder / "vocab.txt").write_text(names, encoding="ascii")
    whole.replace(path)
    return path


def _compressed(path: Path) -> BinaryIO:
    try:
        from isal import igzip

        return igzip.open(path, "wb", compresslevel=3)  # type: ignore[return-value]
    except ImportError:
        return gzip.open(path, "wb", compresslevel=3)  # type: ignore[return-value]


def _tables(size: Size, rng: np.random.Generator) -> dict[str, Any]:
    """Alias tables of the background and the words of the topics; word numbers are shuffled, as in
    an alphabetical vocabulary."""
    frequency = 1.0 / (np.arange(1, size.words + 1) + 30.0) ** 1.05
    share, other = _alias(frequency / frequency.sum())
    number = rng.permutation(size.words).astype(np.int32)
    common = min(4000, size.words // 2)
    topics = np.stack([rng.choice(common, TOPIC_WORDS, replace=False) for _ in range(TOPICS)])
    return {"share": share, "other": other, "number": number, "topics": topics.astype(np.int32)}


def _alias(probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias method: a draw costs one random number and one comparison."""
    p = probability.size
    share = probability * p
    other = np.arange(p, dtype=np.int32)
    small = [int(i) for i in np.flatnonzero(share < 1.0)]
    large = [int(i) for i in np.flatnonzero(share >= 1.0)]
    while small and large:
        low, high = small.pop(), large[-1]
        other[low] = high
        share[high] -= 1.0 - share[low]
        if share[high] < 1.0:
            small.append(large.pop())
    return share, other


def _names(words: int, tables: dict[str, Any]) -> list[str]:
    """Topic words are called after their first topic, the others by their number."""
    names = [f"word{i:06d}" for i in range(words)]
    for t in range(TOPICS - 1, -1, -1):
        for j, rank in enumerate(tables["topics"][t]):
            names[tables["number"][rank]] = f"topic{t:02d}-{j:02d}"
    return names


def _batches(size: Size, tables: dict[str, Any], seed: int) -> Iterator[tuple[memoryview, int]]:
    longest = int(size.length * 8)
    text = np.empty(BATCH * longest * 12, dtype=np.uint8)
    counts = np.zeros(size.words, dtype=np.int32)
    marks = np.zeros((size.words + 63) // 64, dtype=np.uint64)
    for first in range(0, size.documents, BATCH):
        last = min(first + BATCH, size.documents)
        end, entries = _documents(
            first, last, size.length, longest, seed, tables["share"], tables["other"],
            tables["number"], tables["topics"], counts, marks, text,
        )  # fmt: skip
        yield memoryview(text[:end]), entries


@njit(cache=True)
def _random(state):
    """Marsaglia's xorshift64, in [0, 1)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def _normal(state):
    return math.sqrt(-2.0 * math.log(1.0 - _random(state))) * math.cos(
        2.0 * math.pi * _random(state)
    )


@njit(cache=True)
def _say(word, count, counts, marks):
    counts[word] += count
    marks[word >> 6] |= np.uint64(1) << np.uint64(word & 63)


@njit(cache=True)
def _fill(length, state, share, other, number, topics, counts, marks):
    """Count the words of one document."""
    # Some topics are in the news more often than others.
    first = int(_random(state) ** 2 * topics.shape[0])
    second = int(_random(state) * topics.shape[0])
    weight = 0.15 + 0.3 * _random(state)
    for _ in range(length):
        u = _random(state)
        if u < weight:
            # The words of a topic are not equally likely: the first ones lead.
            j = int(_random(state) ** 2 * topics.shape[1])
            rank = topics[first if u < 0.7 * weight else second, j]
        else:
            v = _random(state) * share.size
            rank = int(v)
            if v - rank >= share[rank]:
                rank = other[rank]
        burst = 1
        while burst < 40 and _random(state) < 0.12:
            burst += 1
        _say(number[rank], burst, counts, marks)


@njit(cache=True)
def _digits(value, text, at):
    width = 1
    power = 10
    while value >= power:
        width += 1
        power *= 10
    for j in range(width):
        text[at + width - 1 - j] = 48 + value % 10
        value //= 10
    return at + width


@njit(cache=True)
def _documents(first, last, mean, longest, seed, share, other, number, topics, counts, marks, text):
    """Lines `document word count` of some documents; their end in `text` and their number."""
    state = np.empty(1, dtype=np.uint64)
    at = 0
    entries = 0
    for document in range(first, last):
        state[0] = np.uint64(seed * 1_000_003 + document + 1) * np.uint64(0x9E3779B97F4A7C15)
        for _ in range(4):
            _random(state)
        length = int(mean * math.exp(0.6 * _normal(state) - 0.18))
        length = max(8, min(length, longest))
        _fill(length, state, share, other, number, topics, counts, marks)
        for block in range(marks.size):
            if marks[block] == 0:
                continue
            for bit in range(64):
                word = block * 64 + bit
                if word < counts.size and counts[word]:
                    at = _digits(document + 1, text, at)
                    text[at] = 32
                    at = _digits(word + 1, text, at + 1)
                    text[at] = 32
                    at = _digits(counts[word], text, at + 1)
                    text[at] = 10
                    at += 1
                    entries += 1
                    counts[word] = 0
            marks[block] = 0
    return at, entries
