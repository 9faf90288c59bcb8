"""Texts: which words are counted, how they are weighted, and new texts counted alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparcipal import Result, SparsePCA, read, sparse_pca, verify

TEXTS = [
    "The cat sat on the mat, the cat slept",
    "A dog and a cat met the dog",
    "Stars and planets circle in 2024",
    "The planets and the stars shine",
    "the dog sleeps on the mat",
]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("\n".join(TEXTS))
    return path


def test_english_stop_words_and_numbers_are_not_counted_by_default(lines):
    words = read(lines).feature_names
    assert "cat" in words
    assert not {"the", "and", "2024"} & set(words)
    assert "the" in read(lines, stop_words=None).feature_names
    assert "cat" not in read(lines, stop_words=["cat"]).feature_names


def test_words_are_chosen_by_length_pattern_and_count(lines):
    assert all(len(word) >= 4 for word in read(lines, min_length=4).feature_names)
    assert read(lines, token_pattern="2024").feature_names == ("2024",)
    assert set(read(lines, min_count=3).feature_names) == {"cat", "dog"}
    assert "dog sleeps" in read(lines, ngram_range=(1, 2)).feature_names
    with pytest.raises(ValueError, match="is no regular expression"):
        read(lines, token_pattern="(")
    with pytest.raises(ValueError, match="weighting='loud' is unknown"):
        read(lines, weighting="loud")


def test_least_length_of_words_is_that_of_the_default_pattern_too():
    texts = ["x y zz abc", "x y2 zz 7"]
    names = {n: read(texts, stop_words=None, min_length=n).feature_names for n in (1, 2, 3)}
    assert names[1] == ("abc", "x", "y", "y2", "zz")
    assert names[2] == read(texts, stop_words=None).feature_names == ("abc", "y2", "zz")
    assert names[3] == ("abc",)
    like = read(texts, stop_words=None, min_length=1)
    assert read(["x x"], like=like).X.toarray().tolist() == [[0, 2, 0, 0, 0]]


@pytest.mark.parametrize(
    ("options", "ways"),
    [
        ({"stop_words": None}, "lower min_length=2, give another token_pattern"),
        ({"min_length": 1, "stop_words": ["x", "y"]}, "drop stop_words, give another"),
        ({"min_length": 1, "ngram_range": (3, 3)}, "drop stop_words, lower ngram_range"),
        ({"min_length": 1, "min_df": 2, "max_df": 0.5}, "lower min_df or raise max_df"),
    ],
)
def test_texts_without_a_word_are_told_what_left_them_out(options, ways):
    with pytest.raises(ValueError, match=f"no words are left; {ways}"):
        read(["x y", "y x"], **options)


def test_sequences_are_made_of_the_words_that_are_left():
    options = {"stop_words": ["the"], "ngram_range": (2, 2), "min_length": 2}
    assert read(["Bread the water", "a b bread x water"], **options).feature_names == (
        "bread water",
    )


def test_least_documents_are_a_number_or_a_share():
    texts = ["aa bb", "aa bb", "aa", "cc"]
    assert read(texts, min_df=2).feature_names == ("aa", "bb")
    assert read(texts, min_df=0.75).feature_names == ("aa",)
    assert read(texts, max_df=0.5).feature_names == ("bb", "cc")


def test_only_documents_that_contain_a_word_are_read(lines):
    table = read(lines, containing="cat")
    assert table.shape[0] == 2
    assert "planets" not in table.feature_names
    with pytest.raises(ValueError, match="no document contains 'whale'"):
        read(lines, containing="whale")


def test_weightings_are_what_they_say(lines):
    counts = read(lines).X.toarray()
    n = counts.shape[0]
    np.testing.assert_array_equal(read(lines, weighting="presence").X.toarray(), counts > 0)
    np.testing.assert_allclose(read(lines, weighting="log").X.toarray(), np.log1p(counts))
    idf = np.log((1 + n) / (1 + (counts > 0).sum(axis=0))) + 1
    np.testing.assert_allclose(read(lines, weighting="tfidf").X.toarray(), counts * idf)
    lengths = np.linalg.norm(read(lines, weighting="tfidf", normalize=True).X.toarray(), axis=1)
    np.testing.assert_allclose(lengths, 1.0)


@pytest.mark.parametrize("weighting", ["counts", "presence", "log", "tfidf"])
def test_new_texts_are_counted_as_those_of_the_fit(lines, tmp_path, weighting):
    asked = {"weighting": weighting, "normalize": True, "min_df": 2}
    table = read(lines, **asked)
    result = sparse_pca(table, n_components=2, n_nonzero_coefs=2)
    assert verify(result, read(lines, **asked)).verdict == "proved"
    result.save(tmp_path / "m.json")
    again = Result.load(tmp_path / "m.json")
    np.testing.assert_allclose(read(lines, like=again).X.toarray(), table.X.toarray())
    new = read(["A cat met a zebra", "nothing"], like=again)
    assert new.feature_names == table.feature_names
    assert new.X[[1]].nnz == 0
    one = read(lines, like=again).X[[0]]
    alone = read([TEXTS[0]], like=again).X
    np.testing.assert_allclose(alone.toarray(), one.toarray())  # whatever stands beside it


def test_texts_come_from_tables_json_lists_and_folders(tmp_path):
    rows = "\n".join(f'{i},"{text}",2024-0{i + 1}-01' for i, text in enumerate(TEXTS))
    path = tmp_path / "x.csv"
    path.write_text(f"id,review,day\n{rows}\n")
    table = read(path, text_field="review", label_field="day")
    expected = read(list(TEXTS))
    np.testing.assert_array_equal(table.X.toarray(), expected.X.toarray())
    assert table.labels[1] == "2024-02-01"
    assert table.label_name == "day"
    with pytest.raises(ValueError, match="no column 'reviw'; did you mean 'review'"):
        read(path, text_field="reviw")
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps({"text": t, "year": 2000}) for t in TEXTS))
    assert read(path, label_field="year").labels == ("2000",) * 5
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, text in enumerate(TEXTS):
        (folder / f"2023-0{i + 1}-17 notes.txt").write_text(text)
    assert read(folder).labels[0] == "2023-01-17"


def test_a_list_of_texts_is_told_from_a_list_of_numbers():
    with pytest.raises(ValueError, match=r"X is a list of 5 texts.*sparcipal.read"):
        SparsePCA().fit(TEXTS)


def test_cached_texts_keep_how_they_were_counted(lines, tmp_path):
    for _ in range(2):
        table = read(lines, weighting="tfidf", cache=tmp_path / "kept")
        assert table.texts["options"] == {"weighting": "tfidf"}
        assert table.texts["idf"].shape == (table.shape[1],)


def test_a_misspelt_label_field_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "red apple", "day": "2024"}\n{"text": "blue sea"}\n')
    assert read(path, label_field="day").labels[0] == "2024"
    with pytest.raises(ValueError, match=r"no line has a field 'date'.*'text', 'day'"):
        read(path, label_field="date")


def test_rows_without_text_are_left_out_with_a_word(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("who,said\na,cats and dogs\nb,\nc,dogs\n")
    with pytest.warns(UserWarning, match=r"1 row.s. without text in 'said' left out"):
        assert read(path, text_field="said").shape == (2, 2)


def test_texts_that_are_numbers_and_models_of_numbers_are_named(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("stars,review\n5,sea sun sand\n4,sun sea\n1,rain\n")
    with pytest.raises(ValueError, match="column 'stars' holds numbers, not texts"):
        read(path, text_field="stars")
    numbers = sparse_pca(np.random.default_rng(0).random((9, 3)), n_nonzero_coefs=2)
    with pytest.raises(TypeError, match="did not come from texts: pass rows of its 3 features"):
        numbers.transform(["a text"])
    with pytest.raises(ValueError, match="like has no words: it did not come from texts"):
        read(["a text"], like=numbers)
