"""Results: documents, files, and what a shell shows of them."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

from sparcipal import Alternatives, Moments, Result, alternatives, sparse_pca
from sparcipal.data.products import Gram

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=2)


def test_repr_says_what_a_result_and_sums_hold(result):
    assert repr(result).startswith("<Result: 1 component(s), value ")
    gram = Gram(np.array([0, 2])).add(np.arange(12).reshape(4, 3))
    assert repr(gram) == "<Gram: 4 samples x 2 columns, exact>"
    assert "4 samples" in repr(Moments(3).add(np.arange(12).reshape(4, 3)))


def test_load_refuses_the_proof_of_another_result(result, tmp_path):
    result.save(tmp_path / "a.json")
    other = sparse_pca(X, n_nonzero_coefs=3)
    other.save(tmp_path / "b.json")
    os.replace(tmp_path / "b.json.proof", tmp_path / "a.json.proof")
    with pytest.raises(ValueError, match="belongs to another result"):
        Result.load(tmp_path / "a.json")
    os.remove(tmp_path / "a.json.proof")
    assert Result.load(tmp_path / "a.json").value == result.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(sparcipal=99), "format 99 is not the format"),
        (lambda d: d.update(more=1), "Result has no entry 'more'"),
        (lambda d: d["certificate"]["bounds"][0].update(data=3), "is 3, not a record"),
        (lambda d: d["certificate"]["bounds"][0].update(name=3), "is 3, not a text"),
        (lambda d: d["certificate"].update(guarantees={"a": "b"}), "is 'b', not a number"),
        (lambda d: d["certificate"].update(guarantees={"a": math.inf}), "inf, not a finite"),
        (lambda d: d["certificate"].update(guarantees={"a": 10**400}), "huge integer, not"),
        (lambda d: d["mean"].update(shape=[math.inf]), "array of the shape"),
        (lambda d: d["mean"].update(more=1), "other entries"),
        (lambda d: d.update(feature_names="abcde"), "is 'abcde', not a list"),
        (lambda d: d.update(supports=[[0.5, 1.5]]), "not an array of integers"),
        (lambda d: d.update(mean={"$array": "", "dtype": "<O", "shape": [0]}), "unknown dtype"),
        (lambda d: d["mean"].update({"$array": 3}), "bytes of an array are not those"),
        (lambda d: d["mean"].update(shape=[1]), "bytes of an array are not those"),
        (lambda d: d["mean"].update({"$array": "", "shape": [0] * 99}), "that no array has"),
        (lambda d: d.update(mean=[1.0]), "1 means for 5 features"),
        (lambda d: d.update(scale=[0.0] * 5), "a scale is not positive"),
        (lambda d: d.pop("n_samples"), "Result lacks the entry 'n_samples'"),
        (lambda d: d["settings"].pop("supports"), "settings lacks the entry 'supports'"),
        (lambda d: d["settings"].update(exclude=[5]), "features of 0..4"),
        (lambda d: d["settings"].update(read={"ngram_range": []}), "one of 2 entries or more"),
        (lambda d: d["settings"].update(more=[[10**30]]), "so many digits"),
        (lambda d: d["certificate"].update(screening={"kept": 1}), "lacks the entry 'dropped'"),
    ],
)
def test_from_json_refuses_documents_with_wrong_parts(result, change, message):
    document = json.loads(result.to_json())
    change(document)
    with pytest.raises(ValueError, match=message):
        Result.from_json(json.dumps(document))


@pytest.fixture(scope="module")
def near() -> dict:
    return json.loads(alternatives(sparse_pca(X, n_nonzero_coefs=2), X, force=1).to_json())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outsiders": True}, "is true, not an array"),
        ({"with_bound": "x"}, "is 'x', not an array"),
        ({"with_bound": [1.0]}, "two numbers each"),
        ({"component": 99}, "not in the order"),
        ({"leaving": {"a": 1}}, "is a record, not an array"),
        ({"value": 10**400}, "a huge integer, not a finite number"),
        ({"level": None}, "is null, not a number"),
        ({"proof": {}}, "proof lacks the entry 'kept'"),
        ({"groups": [1]}, "is 1, not an array"),
        ({"groups": [[3, 9]]}, "none of 0..4"),
        ({"supports": [{"support": [1], "weights": [], "value": 1.0, "bound": 1.0, "count": 1}]},
         "one loading per feature"),
        ({"drops": [{"feature": 10**30, "value": 0.0, "bound": 0.0, "fit": None}]}, "none of 0..4"),
        ({"forces": [{"feature": 0, "value": 0.0, "bound": 0.0, "fit": 1}]}, "fit: Result is 1"),
        ({"rounding": "x"}, "is 'x', not a number"),
    ],
)  # fmt: skip
def test_lists_with_wrong_parts_are_refused_before_they_print(near, change, message):
    document = json.loads(json.dumps(near))
    document["components"][0].update(change)
    with pytest.raises(ValueError, match=message):
        Alternatives.from_json(json.dumps(document))


@pytest.mark.parametrize("change", [{"within": None}, {"status": "\x1b[2JPROVED"}, {"drops": 3}])
def test_alternatives_with_wrong_parts_are_refused(near, change):
    with pytest.raises(ValueError, match="no alternatives of sparcipal: Alternatives"):
        Alternatives.from_json(json.dumps({**near, **change}))


@pytest.mark.parametrize("inside", [False, True])
def test_entries_that_nobody_rechecks_are_refused_in_saved_alternatives(result, inside):
    document = json.loads(alternatives(result, X).to_json())
    Alternatives.from_json(json.dumps(document))
    (document["components"][0] if inside else document)["more"] = 1
    with pytest.raises(ValueError, match="has no entry 'more'"):
        Alternatives.from_json(json.dumps(document))


def test_save_leaves_the_old_result_when_it_cannot_write(tmp_path):
    result = sparse_pca(X, n_nonzero_coefs=2)
    path = tmp_path / "model.json"
    result.save(path)
    before = path.read_bytes()
    (tmp_path / "model.json.proof").unlink()
    (tmp_path / "model.json.proof").mkdir()
    with pytest.raises(OSError, match=r"director"):
        sparse_pca(X, n_nonzero_coefs=3).save(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.json.proof"]


def test_a_document_with_two_entries_of_one_name_is_refused():
    """Readers differ in which of them they take."""
    result = sparse_pca(np.random.default_rng(0).standard_normal((20, 4)), n_nonzero_coefs=2)
    text = result.to_json()
    with pytest.raises(ValueError, match="two entries named 'n_features'"):
        Result.from_json(text.rstrip()[:-1] + ', "n_features": 9}')


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "{}", "[1]"])
def test_load_refuses_files_that_hold_no_result_and_says_which_to_name(tmp_path, text):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ValueError, match=r"not a sparcipal result: .*; name a file that save"):
        Result.load(tmp_path / "m.json")
