"""Parses lines `document word count` into numbers in one pass over the bytes.

Nearly all lines have the same form: the document of the line before, one space, digits, one space,
digits, one newline. These are parsed eight bytes at a time (`words[i]` is the little-endian 64-bit
word that starts at byte i), every other line byte by byte, by `any_line`.
"""

import numpy as np
from numba import njit

# Indices into `state`, which parse_lines writes for the caller and for its next call.
AT, ENTRIES, RUNS, BLANK, FAULT = 0, 1, 2, 3, 4
DOCUMENT, WORD, LARGEST, LAST_DOCUMENT, LAST_WORD, GROUPED, SORTED, SIZE = 5, 6, 7, 8, 9, 10, 11, 12


@njit(cache=True, nogil=True)
def digits_in(x):
    """Count the leading digits in the eight bytes of x, each of which was XORed with '0'."""
    high = np.uint64(0x8080808080808080)
    other = ((x + np.uint64(0x7676767676767676)) | x) & high
    if other == np.uint64(0):
        return np.int64(8)
    first = (other & (~other + np.uint64(1))) >> np.uint64(7)
    # `first` is 256^k, so the product moves the byte with value k to the top
    return np.int64((first * np.uint64(0x0001020304050607)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def number_in(x, count):
    """Return the number that the first `count` (1 to 8) digits of x form.

    Digits are joined in pairs, then in fours, then all eight.
    """
    y = x << np.uint64(64 - 8 * count)
    y = (y * np.uint64(10) + (y >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    y = (y * np.uint64(100) + (y >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    y = (y * np.uint64(10000) + (y >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
    return np.int64(y)


@njit(cache=True, nogil=True)
def any_line(text, i, numbers):
    """Parse the line that starts at i, with any spaces and tabs between its fields, into `numbers`
    (3,). Returns the start of the next line, -1 for a blank line, -2 for one that is no entry."""
    for field in range(4):
        c = text[i]
        while c == 32 or c == 9 or c == 13:
            i += 1
            c = text[i]
        if c == 10:
            if field == 0:
                return -1
            return i + 1 if field == 3 else -2
        if field == 3:
            return -2
        first = i
        value = np.int64(0)
        while 48 <= c <= 57:
            value = value * 10 + np.int64(c - 48)
            i += 1
            c = text[i]
        if i == first or i - first > 18 or not (c == 32 or c == 9 or c == 10 or c == 13):
            return -2
        numbers[field] = value
    return -2


@njit(cache=True, nogil=True)
def parse_lines(text, words, end, swift, limits, state, numbers, indices, counts, docs, lengths):
    """Parse the whole lines in text[:end] to entries.

    Entry m has the word `indices[m]` (from 0) and `counts[m]`; consecutive entries of one document
    form run r: `lengths[r]` entries of document `docs[r]` (from 1). text[:end] is followed by 32
    more bytes. Parsing stops at the first line that is no entry: state[FAULT] is then 1 and
    state[AT] its start. `swift` is 0 on big-endian machines, where `words` cannot be used.
    """
    i = np.int64(0)
    line = np.int64(0)
    m = np.int64(0)
    runs = np.int64(0)
    blank = np.int64(0)
    fault = np.int64(0)
    start = np.int64(0)
    d, w, n = np.int64(0), np.int64(0), np.int64(0)
    document, word, largest = state[DOCUMENT], state[WORD], state[LARGEST]
    last_document, last_word = state[LAST_DOCUMENT], state[LAST_WORD]
    grouped, ordered = state[GROUPED], state[SORTED]
    most_documents, most_words, most_count = limits[0], limits[1], limits[2]
    zeros = np.uint64(0x3030303030303030)
    # The bytes of the document in the line before and of the space after it.
    written, mask, width = np.uint64(0), np.uint64(0), np.int64(0)
    while i < end:
        line = i
        swiftly = False
        if width > 0 and (words[i] & mask) == written:
            d = document
            x = words[i + width] ^ zeros
            k = digits_in(x)
            j = i + width + k
            n = np.int64(text[j + 1]) - 48
            # most counts have one digit
            if 0 < k < 8 and text[j] == 32 and 0 <= n <= 9:
                j += 2
                v = np.int64(text[j]) - 48
                while 0 <= v <= 9 and n < 10**17:
                    n = n * 10 + v
                    j += 1
                    v = np.int64(text[j]) - 48
                if v == -38:
                    w = number_in(x, k)
                    swiftly = True
                    i = j + 1
        if not swiftly:
            after = any_line(text, i, numbers)
            if after == -1:
                blank += 1
                while text[i] != 10:
                    i += 1
                i += 1
                continue
            if after == -2:
                fault = 1
                break
            d, w, n = numbers[0], numbers[1], numbers[2]
            width = digits_in(words[i] ^ zeros) + 1 if swift else np.int64(0)
            if 1 < width <= 8 and text[i + width - 1] == 32:
                mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * width)
                written = words[i] & mask
            else:
                width = 0
            i = after
        if d < 1 or d > most_documents or w < 1 or w > most_words or n > most_count:
            fault = 1
            break
        if d != document or m == 0:
            if runs > 0:
                lengths[runs - 1] = m - start
            docs[runs] = d
            runs += 1
            start = m
        if d != document:
            if d < last_document:
                grouped = 0
            else:
                last_document = d
            document = d
        elif w <= word:
            ordered = 0
        word = w
        if w > last_word:
            last_word = w
        if n > largest:
            largest = n
        indices[m] = w - 1
        counts[m] = n
        m += 1
    if runs > 0:
        lengths[runs - 1] = m - start
    state[AT] = line if fault else i
    state[ENTRIES], state[RUNS], state[BLANK], state[FAULT] = m, runs, blank, fault
    state[DOCUMENT], state[WORD], state[LARGEST] = document, word, largest
    state[LAST_DOCUMENT], state[LAST_WORD] = last_document, last_word
    state[GROUPED], state[SORTED] = grouped, ordered
