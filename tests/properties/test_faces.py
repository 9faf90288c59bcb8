"""Every face knows every kind of components: one table of faces and kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

from sparcipal import (
    Result,
    SparsePCA,
    compare,
    sparse_path,
    sparse_pca,
    verify,
)
from sparcipal.cli import main

KINDS: dict[str, dict[str, Any]] = {
    "disjoint": {},
    "disjoint adjusted": {"objective": "adjusted"},
    "free": {"supports": "free"},
    "orthogonal": {"supports": "orthogonal"},
    "common": {"supports": "common"},
    "uncorrelated": {"uncorrelated": True},
    "free uncorrelated": {"supports": "free", "uncorrelated": True},
    "common uncorrelated": {"supports": "common", "uncorrelated": True},
    "nonnegative": {"nonnegative": True},
    "nonnegative adjusted": {"nonnegative": True, "objective": "adjusted"},
    "nonnegative free": {"nonnegative": True, "supports": "free"},
}
REFUSED: dict[str, dict[str, Any]] = {
    "nonnegative orthogonal": {"nonnegative": True, "supports": "orthogonal"},
    "nonnegative common": {"nonnegative": True, "supports": "common"},
    "nonnegative uncorrelated": {"nonnegative": True, "uncorrelated": True},
    "orthogonal adjusted": {"supports": "orthogonal", "objective": "adjusted"},
    "common adjusted": {"supports": "common", "objective": "adjusted"},
    "free sums": {"supports": "free", "objective": "sum"},
}
ASKED = {"n_components": 2, "n_nonzero_coefs": 2, "method": "threshold"}


def table() -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((20, 5))
    X[:, 1] += X[:, 0]
    X[:, 3] += 0.5 * X[:, 0]
    return X


X = table()


def flags(kind: dict[str, Any]) -> list[str]:
    named = {f"--{name.replace('_', '-')}": value for name, value in kind.items()}
    return [
        word
        for name, value in named.items()
        for word in ([name] if value is True else [name, value])
    ]


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Result]:
    kind = KINDS[request.param]
    return kind, sparse_pca(X, **ASKED, **kind)


def test_function_says_and_proves_the_kind(fitted):
    kind, result = fitted
    assert all(result.settings[name] == value for name, value in kind.items())
    assert result.value <= result.bound
    said = str(result)
    assert kind.get("supports", "disjoint") in said
    assert ("adjusted variances" in said) == (result.settings["objective"] == "adjusted")
    assert ("uncorrelated" in said) == ("uncorrelated" in kind)


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_verify_proves_results_and_saved_ones(fitted, arithmetic, tmp_path):
    _, result = fitted
    result.save(tmp_path / "model.json")
    for one in (result, Result.load(tmp_path / "model.json")):
        assert verify(one, X, arithmetic=arithmetic).verdict == "proved"


def test_estimator_gives_the_answer_of_the_function(fitted):
    kind, result = fitted
    model = clone(SparsePCA(**ASKED, **kind)).fit(X)
    np.testing.assert_array_equal(model.components_, result.components)
    assert model.certificate_.bound == result.bound
    assert model.transform(X).shape == (20, 2)


def test_path_and_comparison_ask_the_same_question(fitted):
    kind, result = fitted
    (one,) = sparse_path(X, n_components=2, n_nonzero_coefs=[2], **kind)
    assert result.value * (1 - 1e-9) <= one.value <= result.bound * (1 + 1e-9)
    assert verify(one, X)
    table = compare(X, n_components=2, n_nonzero_coefs=2, methods=["threshold"], **kind)
    assert one.value * (1 - 1e-9) <= table.bound == pytest.approx(result.bound, rel=0.02)


def test_command_fits_reports_shows_and_verifies(fitted, tmp_path):
    kind, result = fitted
    source, model = tmp_path / "table.csv", str(tmp_path / "model.json")
    np.savetxt(source, X, delimiter=",", fmt="%.17g", header="a,b,c,d,e", comments="")
    run = CliRunner().invoke
    asked = ["-k", "2", "-s", "2", "--method", "threshold", *flags(kind)]
    page = tmp_path / "page.html"
    for words in (
        ["fit", str(source), *asked, "-o", model, "--report", str(page)],
        ["show", model],
        ["verify", model, str(source)],
    ):
        said = run(main, words)
        assert said.exit_code == 0, said.output
    assert kind.get("supports", "disjoint") in page.read_text()
    assert "correlate" in page.read_text()
    assert Result.load(model).value == pytest.approx(result.value, rel=1e-12)


@pytest.mark.parametrize("name", list(REFUSED))
def test_every_face_refuses_what_is_no_kind(name, tmp_path):
    kind = REFUSED[name]
    for face in (
        lambda: sparse_pca(X, **ASKED, **kind),
        lambda: SparsePCA(**ASKED, **kind).fit(X),
        lambda: sparse_path(X, n_components=2, n_nonzero_coefs=[2], **kind),
        lambda: compare(X, n_components=2, n_nonzero_coefs=2, methods=["threshold"], **kind),
    ):
        with pytest.raises(ValueError, match=r"supports|uncorrelated") as refusal:
            face()
        assert "; " in str(refusal.value)  # the remedy
    source = tmp_path / "table.csv"
    np.savetxt(source, X, delimiter=",")
    said = CliRunner().invoke(main, ["fit", str(source), "-k", "2", "-s", "2", *flags(kind)])
    assert said.exit_code != 0
    assert "; " in said.output
    assert "'" not in said.output  # options as a shell has them
