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
        (lambda d: d["certificate"]["bounds"][0].update(data=3), "has no data"),
        (lambda d: d["certificate"]["bounds"][0].update(name=3), "no name or no value"),
        (lambda d: d["certificate"].update(guarantees={"a": "b"}), "guarantee is no number"),
        (lambda d: d["certificate"].update(guarantees={"a": math.inf}), "guarantee is no number"),
        (lambda d: d["certificate"].update(guarantees={"a": 10**400}), "too large"),
        (lambda d: d["mean"].update(shape=[math.inf]), "array of the shape"),
        (lambda d: d["mean"].update(more=1), "other entries"),
        (lambda d: d.update(feature_names="abcde"), "no list of texts"),
        (lambda d: d.update(supports=[[0.5, 1.5]]), "no integers"),
        (lambda d: d.update(mean={"$array": "", "dtype": "<O", "shape": [0]}), "unknown dtype"),
    ],
)
def test_from_json_refuses_documents_with_wrong_parts(result, change, message):
    document = json.loads(result.to_json())
    change(document)
    with pytest.raises(ValueError, match=message):
        Result.from_json(json.dumps(document))


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
def test_documents_of_others_are_refused_with_what_to_name(tmp_path, text):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ValueError, match=r"not a sparcipal result: .*; name a file that save"):
        Result.load(tmp_path / "m.json")
