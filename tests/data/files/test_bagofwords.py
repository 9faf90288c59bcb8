"""Bags of words: the fast parser against plain Python, every fault with its line, both gzips."""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
import tempfile
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, read
from sparcipal.data import rows
from sparcipal.data.files import bagofwords, cache, spill
from sparcipal.data.files import bytes as source
from sparcipal.data.rows import memory_map
from sparcipal.kernels import parse as kernel


@pytest.fixture(params=["isal", "zlib"])
def gunzip(request, monkeypatch):
    if request.param == "zlib":
        monkeypatch.setattr(source, "_fast_gzip", lambda: None)
    elif source._fast_gzip() is None:
        pytest.skip("python-isal is not installed")
    return request.param


def text_of(entries, header=True):
    rows = [f"{d} {w} {c}\n" for d, w, c in entries]
    if header:
        sizes = [max((e[j] for e in entries), default=1) for j in (0, 1)]
        rows = [f"{sizes[0]}\n", f"{sizes[1]}\n", f"{len(entries)}\n", *rows]
    return "".join(rows)


def write(path, text):
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def expected(entries):
    """Plain Python: the sum of the counts of every place."""
    out = np.zeros([max(e[j] for e in entries) for j in (0, 1)], dtype=np.int64)
    for d, w, c in entries:
        out[d - 1, w - 1] += c
    return out


def some_entries(rng, count, documents=12, words=40, largest=9):
    return [
        (rng.randint(1, documents), rng.randint(1, words), rng.randint(0, largest))
        for _ in range(count)
    ]


def check(path, entries):
    table = read(path)
    np.testing.assert_array_equal(table.X.toarray(), expected(entries))
    assert table.X.has_canonical_format
    again = Moments(table.shape[1]).add(table.X)
    for name, found in table.moments.arrays().items():
        np.testing.assert_array_equal(found, again.arrays()[name], err_msg=name)


# --- the kernels against plain Python ---


def words_of(text):
    return np.lib.stride_tricks.as_strided(
        text[:8].view(np.uint64), shape=(text.size - 7,), strides=(1,)
    )


@pytest.mark.kernels
@pytest.mark.parametrize("digits", ["", "7", "30", "102660", "1234567", "99999999"])
def test_parser_turns_eight_bytes_into_their_number(digits):
    for after in (" ", "\n", "/", ":", "x", "\xff", "\0"):
        raw = (digits + after + "1234567890")[:8].encode("latin-1")
        x = np.frombuffer(raw, dtype="<u8")[0] ^ np.uint64(0x3030303030303030)
        found = int(kernel.digits_in(x))
        assert found == len(digits)
        if found > 0:
            assert int(kernel.number_in(x, np.int64(found))) == int(digits)


@pytest.mark.kernels
@pytest.mark.parametrize("swift", [0, 1])
def test_parser_agrees_with_plain_python_on_every_line(swift):
    rng = random.Random(swift)
    for _ in range(60):
        lines, plain = [], []
        for _ in range(rng.randint(1, 30)):
            if rng.random() < 0.1:
                lines.append(rng.choice(["", " ", "\t", "\r"]))
                continue
            entry = (
                rng.choice([3, 3, 3, 12345678, 99]),
                rng.randint(1, 10**9),
                rng.randint(0, 300),
            )
            plain.append(entry)
            gap = rng.choice([" "] * 8 + ["\t", "  "])
            lines.append(rng.choice(["", "", "", " "]) + gap.join(map(str, entry)))
            lines[-1] += rng.choice(["", "", "", "\r", " "])
        raw = ("\n".join(lines) + "\n").encode()
        text = np.frombuffer(raw + bytes(32), dtype=np.uint8)
        state = np.zeros(kernel.SIZE, dtype=np.int64)
        limits, numbers = np.array([10**9] * 3), np.zeros(3, dtype=np.int64)
        out = [np.zeros(40, dtype=np.int32) for _ in range(4)]
        kernel.parse_lines(text, words_of(text), len(raw), swift, limits, state, numbers, *out)
        assert state[kernel.FAULT] == 0
        assert state[kernel.AT] == len(raw)
        m, runs = state[kernel.ENTRIES], state[kernel.RUNS]
        assert m + state[kernel.BLANK] == len(lines)
        documents = np.repeat(out[2][:runs], out[3][:runs])
        found = list(zip(documents.tolist(), (out[0][:m] + 1).tolist(), out[1][:m].tolist()))
        assert found == plain


# --- files in any order ---


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("name", ["docword.txt", "docword.txt.gz"])
def test_bag_of_words_is_the_same_for_any_order_repeats_and_blocks(
    tmp_path, monkeypatch, block, name, gunzip
):
    monkeypatch.setattr(bagofwords, "BLOCK", block)
    monkeypatch.setattr(bagofwords, "SLICE", 10)
    rng = random.Random(block)
    for header in (True, False):
        mixed = some_entries(rng, 80)
        distinct = sorted({(d, w): (d, w, c) for d, w, c in mixed}.values())
        grouped = sorted(distinct, key=lambda e: (e[0], rng.random()))
        for entries in (mixed, distinct, grouped, sorted(mixed)):
            check(write(tmp_path / name, text_of(entries, header)), entries)


def test_documents_and_words_without_entries_count(tmp_path):
    table = read(write(tmp_path / "docword.txt", "5\n7\n2\n2 3 1\n4 1 2\n"))
    assert table.shape == (5, 7)
    assert table.moments.n_samples == 5
    assert read(write(tmp_path / "docword.txt", "2 3 1\n4 1 2\n")).shape == (4, 3)
    assert read(write(tmp_path / "docword.txt", "5\n7\n0\n")).shape == (5, 7)
    names = [f"w{i}" for i in range(9)]
    longer = read(write(tmp_path / "docword.txt", "2 3 1\n4 1 2\n"), feature_names=names)
    assert longer.shape == (4, 9)
    assert longer.moments.n_features == 9


def test_a_word_in_every_document_has_its_smallest_count(tmp_path):
    entries = [(1, 1, 300), (1, 2, 1), (2, 1, 7), (3, 1, 8), (3, 2, 70_000)]
    check(write(tmp_path / "docword.txt", text_of(entries)), entries)
    assert read(tmp_path / "docword.txt").moments.low.tolist() == [7.0, 0.0]


@pytest.mark.parametrize(
    ("largest", "dtype"),
    [(255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32"), (2**31 - 1, "uint32")],
)
def test_bag_of_words_widens_counts_when_needed(tmp_path, monkeypatch, largest, dtype):
    monkeypatch.setattr(bagofwords, "BLOCK", 32)
    entries = [(d, w, 1 + (d + w) % 200) for d in range(1, 9) for w in range(1, 9)]
    entries[40] = (*entries[40][:2], largest)
    path = write(tmp_path / "docword.txt", text_of(entries))
    check(path, entries)
    assert read(path).X.dtype == dtype


def test_squares_beyond_64_bits_are_exact(tmp_path):
    entries = [(d, 1, 2**31 - 1 - d) for d in range(1, 9)]
    check(write(tmp_path / "docword.txt", text_of(entries)), entries)
    squares = read(tmp_path / "docword.txt").moments.squares
    assert int(squares[0]) == sum(c * c for _, _, c in entries)


def test_bag_of_words_widens_sums_of_repeated_entries(tmp_path):
    path = write(tmp_path / "docword.txt", text_of([(1, 1, 200), (2, 1, 1), (1, 1, 100)]))
    assert read(path).X.toarray().tolist() == [[300], [1]]
    big = 2**31 - 1
    path = write(tmp_path / "docword.txt", text_of([(1, 1, 3), (2, 4, big), (2, 4, 1)]))
    with pytest.raises(ValueError, match="word 4 in document 2 add up to 2147483648, more than"):
        read(path)


# --- more than may be held ---


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files, where nothing is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(bagofwords, "BLOCK", 64)
    monkeypatch.setattr(spill, "CHUNK", 50)
    yield folder
    assert not list(folder.iterdir())


def orders(seed, count=300):
    """The same entries in order, grouped by documents, and mixed; and mixed with repeats."""
    rng = random.Random(seed)
    mixed = some_entries(rng, count)
    distinct = sorted({(d, w): (d, w, c) for d, w, c in mixed}.values())
    grouped = sorted(distinct, key=lambda e: (e[0], rng.random()))
    return {"sorted": distinct, "grouped": grouped, "mixed": mixed}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("order", ["sorted", "grouped", "mixed"])
@pytest.mark.parametrize("name", ["docword.txt", "docword.txt.gz"])
def test_counts_that_exceed_the_room_are_mapped_whatever_their_order(
    tmp_path, temporary, name, order, header
):
    entries = orders(1)[order]
    path = write(tmp_path / name, text_of(entries, header))
    held = read(path, cache=False)
    assert memory_map(held.X) is None
    size = held.X.data.nbytes + held.X.indices.nbytes
    for room in (60, 600, size - 1, 10 * size):
        found = read(path, cache=False, memory_limit=2 * room)
        arrays = (found.X.data, found.X.indices)
        mapped = [memory_map(array) is not None for array in arrays]
        if room < size:
            assert mapped == [True, True], room
        elif room > size:
            assert mapped == [False, False], room
        np.testing.assert_array_equal(found.X.toarray(), expected(entries))
        for key, sums in found.moments.arrays().items():
            np.testing.assert_array_equal(sums, held.moments.arrays()[key])


def test_counts_that_outgrow_what_the_header_lets_expect_are_mapped(tmp_path, temporary):
    entries = [(d, w, 1) for d in range(1, 31) for w in range(1, 11)]
    small = write(tmp_path / "docword.txt", text_of(entries))
    limit = 2 * 2100  # 5 bytes an entry and the documents; 8 once one count is large
    assert memory_map(read(small, cache=False, memory_limit=limit).X) is None
    entries[-1] = (30, 10, 70_000)
    found = read(write(small, text_of(entries)), cache=False, memory_limit=limit)
    assert found.X.dtype == np.uint32
    assert memory_map(found.X) is not None
    np.testing.assert_array_equal(found.X.toarray(), expected(entries))


@pytest.mark.parametrize("off", [True, False])
def test_counts_too_small_for_the_cache_are_mapped_and_leave_no_entry(
    tmp_path, temporary, monkeypatch, off
):
    monkeypatch.setenv(cache.VARIABLE, "off" if off else str(tmp_path / "kept"))
    for entries in orders(2).values():
        found = read(write(tmp_path / "docword.txt", text_of(entries)), memory_limit=700)
        assert memory_map(found.X) is not None
        assert found.cache_entry is None
        np.testing.assert_array_equal(found.X.toarray(), expected(entries))
    assert (tmp_path / "kept").exists() != off
    assert not list((tmp_path / "kept").glob("*"))


def test_counts_from_standard_input_are_mapped_if_they_exceed_the_room(monkeypatch, temporary):
    for entries in orders(3).values():
        raw = io.BytesIO(text_of(entries).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        found = read("-", format="bagofwords", memory_limit=700)
        assert memory_map(found.X) is not None
        np.testing.assert_array_equal(found.X.toarray(), expected(entries))


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_a_disk_may_fail_at_any_step_where_counts_are_mapped(
    tmp_path, temporary, monkeypatch, order
):
    entries = orders(4)[order]
    path = write(tmp_path / "docword.txt", text_of(entries, header=False))
    write_, steps = cache.Column._all, []

    def fails_at(step):
        def some(self, raw):
            steps.append(1)
            if len(steps) >= step:
                raise OSError(28, "No space left on device")
            return write_(self, raw)

        return some

    monkeypatch.setattr(cache.Column, "_all", fails_at(np.inf))
    read(path, cache=False, memory_limit=700)
    total = len(steps)
    assert total > 50
    for step in [*range(1, total, 11), total]:
        steps.clear()
        monkeypatch.setattr(cache.Column, "_all", fails_at(step))
        with pytest.warns(RuntimeWarning, match="No space left") as told:
            found = read(path, cache=False, memory_limit=700)
        assert len(told) == 1
        assert memory_map(found.X) is None
        np.testing.assert_array_equal(found.X.toarray(), expected(entries))


@pytest.mark.parametrize("mixed", [False, True])
def test_memory_does_not_grow_with_the_counts(tmp_path, monkeypatch, mixed):
    monkeypatch.setattr(bagofwords, "BLOCK", 1 << 14)
    monkeypatch.setattr(spill, "CHUNK", 1 << 12)
    monkeypatch.setattr(rows, "SPARSE_BLOCK", 1 << 12)
    monkeypatch.setattr(source, "BUFFER", 1 << 12)
    rng, peaks, sizes = np.random.default_rng(0), [], []
    for count in (10_000, 10_000, 50_000):  # the first one compiles
        places = np.sort(rng.choice(1000 * 1000, count, replace=False))
        places = rng.permutation(places) if mixed else places
        text = "".join(f"{i // 1000 + 1} {i % 1000 + 1} 3\n" for i in places.tolist())
        path = write(tmp_path / f"docword{len(sizes)}.txt", f"1000\n1000\n{count}\n{text}")
        sizes.append(5 * count)
        tracemalloc.start()
        table = read(path, cache=False, memory_limit=100_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert memory_map(table.X) is not None
        assert table.X.nnz == count
    assert peaks[2] - peaks[1] < 0.1 * (sizes[2] - sizes[1]), (peaks, sizes)


# --- faults ---


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("4\n3\n1000000000000000\n", "the header says 1000000000000000 entries, the file has 2"),
        ("4\n3\n1\n", "the header says 1 entries, the file has 2"),
        ("4\n999999999999\n2\n", "the header says 999999999999 words, but there are only 2"),
        ("999999999999\n3\n2\n", "the header says 999999999999 documents, but there are only 2"),
        ("2000000000\n3\n2\n", "the header says 2000000000 documents, but there are only 2"),
        (f"4\n3\n{'9' * 40}\n", "not a bag of words"),
    ],
)
def test_bag_of_words_refuses_a_header_that_lies(tmp_path, header, message):
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "docword.txt", header + "1 1 1\n2 2 2\n"))


@pytest.mark.kernels
@pytest.mark.parametrize("good", [0, 1, 100_000])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("1 1", "2 fields instead of"),
        ("1 1 1 1", "4 fields instead of"),
        ("1 1 1x", "'x' where"),
        ("1 -1 1", "'-' where"),
        ("1 1 1.5", r"'\.' where"),
        ("9999999 1 1", "document 9999999 is outside 1..200000"),
        ("0 1 1", "document 0 is outside"),
        ("1 6 1", r"word 6 is outside 1\.\.5"),
        ("1 0 1", "word 0 is outside"),
        ("1 1 2147483648", "count 2147483648 is outside 0..2147483647"),
        ("1 1 99999999999999999999", "a number of more than 18 digits"),
        ("1 " + "1" * 70_000 + " 1", "longer than|a number of more"),
    ],
)
def test_a_bad_line_is_told_with_its_number(tmp_path, good, bad, message):
    body = "".join(f"{i // 5 + 1} {i % 5 + 1} 1\n" for i in range(good))
    text = f"200000\n5\n{good + 2}\n{body}{bad}\n7 1 1\n"
    path = write(tmp_path / "docword.txt.gz", text)
    with pytest.raises(
        ValueError, match=f"line {good + 4}: .*{message}|line {good + 4}: {message}"
    ):
        read(path)


def test_bag_of_words_takes_a_last_line_without_end_and_blank_lines(tmp_path):
    assert read(write(tmp_path / "docword.txt", "1 1 1\n2 2 2")).X.nnz == 2
    assert read(write(tmp_path / "docword.txt", "1 1 1\n2 2 2\n\n  \n")).X.nnz == 2
    with pytest.raises(ValueError, match="line 2: 2 fields"):
        read(write(tmp_path / "docword.txt", "1 1 1\n2 2"))


def test_every_damage_to_a_gzip_file_is_noticed(tmp_path, gunzip):
    rng = random.Random(1)
    entries = sorted({(d, w): (d, w, c) for d, w, c in some_entries(rng, 2000)}.values())
    raw = gzip.compress(text_of(entries).encode())
    path = tmp_path / "docword.txt.gz"
    for cut in (5, 30, len(raw) // 2, len(raw) - 9, len(raw) - 1):
        path.write_bytes(raw[:cut])
        with pytest.raises(ValueError, match=r"docword.txt.gz: the gzip file is damaged or cut"):
            read(path)
    for at in [*range(20, len(raw), 97), len(raw) - 6, len(raw) - 2]:
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 16]) + raw[at + 1 :])
        with pytest.raises(ValueError, match=r"docword.txt.gz: the gzip file is damaged or cut"):
            read(path)


def test_a_cut_gzip_file_tells_how_far_it_went(tmp_path, gunzip, monkeypatch):
    monkeypatch.setattr(bagofwords, "BLOCK", 1000)
    monkeypatch.setattr(source, "BUFFER", 512)
    raw = gzip.compress(text_of([(d, 1, 1) for d in range(1, 3000)]).encode())
    path = tmp_path / "docword.txt.gz"
    path.write_bytes(raw[:-20])
    with pytest.raises(ValueError, match=r"cut short after line \d+ ") as error:
        read(path)
    assert int(re.search(r"line (\d+)", str(error.value))[1]) > 100


def test_gzip_files_are_read_with_several_members_and_padding(tmp_path, gunzip):
    entries = [(d, 1, d) for d in range(1, 50)]
    text = text_of(entries).encode()
    path = tmp_path / "docword.txt.gz"
    path.write_bytes(gzip.compress(text[:50]) + gzip.compress(text[50:]) + bytes(64))
    check(path, entries)
    path.write_bytes(gzip.compress(text) + b"something else")
    with pytest.raises(ValueError, match="damaged or cut short"):
        read(path)


def test_a_file_is_refused_when_it_changes_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "TELL", 0.0)
    monkeypatch.setattr(source, "BUFFER", 4096)
    path = write(tmp_path / "docword.txt", text_of([(d, 1, 1) for d in range(1, 5000)]))

    def grow(progress):
        if path.stat().st_size < 1_000_000:  # once
            with open(path, "a") as file:
                file.write("1 1 1\n" * 200_000)

    with pytest.raises(ValueError, match=r"docword.txt: the file changed while it was read"):
        read(path, callback=grow)

    def swap(progress):
        other = write(tmp_path / "other", text_of([(1, 1, 1)]))
        other.replace(path)

    with pytest.raises(ValueError, match=r"docword.txt: the file changed while it was read"):
        read(path, callback=swap)


# --- progress, pipes ---


@pytest.mark.parametrize("name", ["docword.txt", "docword.txt.gz"])
def test_progress_tells_bytes_and_the_time_left(tmp_path, monkeypatch, name):
    monkeypatch.setattr(source, "TELL", 0.0)
    monkeypatch.setattr(source, "BUFFER", 4096)
    rng = random.Random(2)
    path = write(tmp_path / name, text_of(sorted(set(some_entries(rng, 9000, 999, 999)))))
    heard = []
    read(path, callback=heard.append)
    assert len(heard) > 3
    assert {p.stage for p in heard} == {"read"}
    assert {p.total for p in heard} == {path.stat().st_size}
    assert sorted(p.done for p in heard) == [p.done for p in heard]
    assert heard[-1].done == heard[-1].total
    assert re.fullmatch(rf"{re.escape(name)}: [\d.]+ kB of [\d.]+ kB, 0 s left", heard[1].message)
    with pytest.raises(KeyboardInterrupt, match="stopped by the callback"):
        read(path, callback=lambda progress: True)


def test_read_writes_a_line_per_tenth_when_verbose(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(source, "TELL", 0.0)
    monkeypatch.setattr(source, "BUFFER", 512)
    monkeypatch.setattr(bagofwords, "BLOCK", 512)
    path = write(tmp_path / "docword.txt", text_of([(d, 1, 1) for d in range(1, 5000)]))
    read(path, verbose=1)
    lines = [line for line in capsys.readouterr().err.splitlines() if "docword" in line]
    assert 9 <= len(lines) <= 12


@pytest.mark.parametrize("compress", [False, True])
def test_bag_of_words_is_read_from_standard_input(monkeypatch, compress):
    raw = b"1 1 1\n2 2 300\n"
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(raw) if compress else raw))
    monkeypatch.setattr(sys, "stdin", stdin)
    table = read("-", format="bagofwords")
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0], [0, 300]])
    assert sp.issparse(table.X)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_bag_of_words_tells_damage_that_follows_a_bad_line(tmp_path):
    """A line that makes no sense in a gzip file may come from damage further on: that is said."""
    text = b"2\n2\n3\n1 1 1\n1 x 1\n2 2 2\n" + b"2 2 2\n" * 2_000_000
    whole = gzip.compress(text)
    path = written(tmp_path / "docword.x.txt.gz", whole)
    with pytest.raises(ValueError, match="line 5"):
        read(path)
    written(path, whole[:-6] + b"\0\0\0\0\0\0")
    with pytest.raises(ValueError, match="damaged or cut short, first seen in line 5"):
        read(path)


def test_bag_of_words_refuses_lines_that_never_end(tmp_path, monkeypatch):
    monkeypatch.setattr(bagofwords, "LONGEST", 1 << 12)
    path = written(tmp_path / "docword.x.txt", "2\n2\n1\n1 1 " + "1" * (1 << 23))
    with pytest.raises(ValueError, match="line 4: longer than 4096 bytes"):
        read(path)
