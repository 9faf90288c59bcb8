"""report.html: self-contained, safe with any feature name, and alive in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from sparcipal import Table, alternatives, choose, read, sparse_pca, stability
from sparcipal.data.table import as_table
from sparcipal.report.drawings import correlation_table, proof_drawing
from sparcipal.report.page import report_html, write_report

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "b'c",
    "delta",
    "a&b",
    "fox",
)
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6))
    table = as_table(X, NAMES)
    samples = tuple(f"<b>sample {i}</b>" for i in range(30))
    labels = tuple(("</script>", "<i>odd</i>")[i % 2] for i in range(30))
    return replace(table, sample_names=samples, labels=labels, label_name="kind & more")


@pytest.fixture(scope="module")
def page(table):
    result = sparse_pca(table, n_components=3, n_nonzero_coefs=2)
    return report_html(result, table=table)


VOID = {"meta", "input", "br"}


class Structure(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs


def test_markup_is_closed_and_names_stay_text(page):
    structure = Structure()
    structure.feed(page)
    assert structure.open == []
    assert structure.seen.count("script") == 2  # the samples as data, and the script of the page
    assert "img" not in structure.seen
    assert not [name for name, _ in structure.attributes if name.startswith("on")]
    for name in NAMES:
        assert html.escape(name) in page


def test_nothing_is_loaded_from_anywhere(page):
    assert "default-src 'none'" in page
    structure = Structure()
    structure.feed(page)
    assert not {"src", "data", "action"} & {name for name, _ in structure.attributes}
    links = [value for name, value in structure.attributes if name == "href"]
    places = [value for name, value in structure.attributes if name == "id"]
    assert links
    assert all(link[0] == "#" and link[1:] in places for link in links)
    assert len(set(places)) == len(places)
    assert not re.search(r"url\(|@import|https?://|fetch\(", page)


def test_page_holds_every_section_and_figure(page):
    for text in (
        "Three components",
        "3 sparse components, at most 2 nonzeros each",
        "Three components that use all features capture",
        "it is proved that no other choice has a larger sum of variances",
        "Do components say the same?",
        "What is proved",
        "out of reach",
        "samples that score highest",
        "copy as CSV",
        "To do it again",
        "sparcipal fit data.csv -k 3 -s 2",
        "sparse_pca(table, n_components=3, n_nonzero_coefs=2)",
        "&quot;n_nonzero_coefs&quot;",
        "<dt>numpy</dt>",
    ):
        assert text in page
    assert re.search(r'<time datetime="20\d\d-\d\d-\d\dT', page)
    assert len(re.findall(r'<tr><td data-value="', page)) == 6
    assert page.count('<path class="p g') == 30 + 2  # samples, and the legend
    assert page.count('<g class="arrows"') == 3


def test_report_is_a_whole_file_with_default_permissions_and_nothing_beside_it(table, tmp_path):
    result = sparse_pca(table, n_nonzero_coefs=2, certify=False)
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "report.html").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_copied_names_are_the_real_ones():
    names = ("long " * 60 + "end", "two\nlines\tand \x1b", 'quo"te <b>', "caf\u00e9")
    X = np.random.default_rng(0).standard_normal((20, 4))
    structure = Structure()
    structure.feed(report_html(sparse_pca(as_table(X, names), n_nonzero_coefs=4, certify=False)))
    kept = [value for name, value in structure.attributes if name == "data-name"]
    # html.parser leaves out the control character that browsers keep.
    assert sorted(kept) == sorted(name.replace("\x1b", "") for name in names)
    assert "feature.dataset.name" in report_html(sparse_pca(X, n_nonzero_coefs=1, certify=False))


def test_what_is_still_possible_is_drawn_unless_the_optimum_is_proved():
    from tests.report.test_report import CASES

    assert "still possible</b>: at most 3 % more" in report_html(CASES["open"])
    assert "captures more than 28.7 % of it" in report_html(CASES["open"])
    assert "still possible" not in report_html(CASES["proved"])
    unknown = report_html(CASES["nothing"])
    assert "<b>unknown</b>: nothing was proved" in unknown
    assert "out of reach</b>" not in unknown


def tracks(result):
    """The bars of the drawing of a proof: kinds with their widths in percent."""
    rows = re.findall(r'<div class="spc-track">(.*?)</div>', proof_drawing(result))
    spans = (re.findall(r'class="spc-(\w+)" style="width:([\d.]+)%"', row) for row in rows)
    return [[(kind, float(width)) for kind, width in row] for row in spans]


def total(row, kind):
    return sum(width for own, width in row if own == kind)


def test_the_bar_is_all_variance_to_scale():
    from tests.report.test_report import CASES

    result = CASES["open"]
    (first, narrow) = tracks(result)
    whole = result.total_variance
    assert total(first, "part") == pytest.approx(100 * result.value / whole, abs=0.05)
    assert total(first, "room") == pytest.approx(
        100 * (result.bound - result.value) / whole, abs=0.05
    )
    assert sum(width for _, width in first) == pytest.approx(100, abs=0.05)
    assert [round(total(narrow, kind)) for kind in ("part", "room", "out")] == [33, 33, 33]
    (unknown,) = tracks(CASES["nothing"])
    assert total(unknown, "room") == pytest.approx(100 * (1 - result.value / whole), abs=0.05)


def test_the_bar_is_full_where_all_variance_was_found():
    rank_one = np.outer(np.arange(20.0) - 9.5, [1.0, 2.0, -1.0])
    result = sparse_pca(rank_one, n_nonzero_coefs=3)
    assert tracks(result) == [[("part", 100.0)]]
    assert "out of reach" not in proof_drawing(result)


def test_a_small_share_of_all_variance_is_drawn_again_enlarged():
    X = np.random.default_rng(0).standard_normal((200, 60))
    result = sparse_pca(X, n_nonzero_coefs=2)
    share = 100 * result.value / result.total_variance
    first, enlarged = tracks(result)
    assert total(first, "part") == pytest.approx(share, abs=0.05)
    assert 2 < share < 4.5
    assert total(enlarged, "part") == pytest.approx(100 * share / 5, abs=0.1)
    assert "<span>the same, enlarged</span><span>5.0 %</span>" in proof_drawing(result)


def test_a_biplot_names_the_strongest_of_both_components_and_says_how_many_have_no_arrow():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((80, 2)) * [5, 2]
    X = np.repeat(scores, 8, axis=1) + rng.standard_normal((80, 16)) * np.repeat([0.1, 1.0], 8)
    names = [f"{group}{i}" for group in "ab" for i in range(8)]
    table = as_table(X, names)
    page = report_html(sparse_pca(table, n_components=2, n_nonzero_coefs=8), table=table)
    arrows = page.split('<g class="arrows"')[1].split("</g>")[0]
    shown = re.findall(r">([ab]\d)</text>", arrows)
    assert sorted(name[0] for name in shown) == ["a"] * 5 + ["b"] * 5
    assert ">10 of 16 have arrows</text>" in arrows
    assert "Only 10 have one, the longest of either component." in page
    few = sparse_pca(table, n_components=2, n_nonzero_coefs=3)
    assert "have arrows" not in report_html(few, table=table)


def test_a_correlation_of_nothing_has_no_sign():
    assert ">0.00</td>" in correlation_table(np.array([[1.0, -1e-4], [-1e-4, 1.0]]))


def test_one_component_is_drawn_in_lanes_and_many_samples_are_thinned(table):
    X = np.tile(table.X, (100, 1))
    many = Table(X, table.feature_names, labels=tuple(f"{i}" for i in range(3000)))
    page = report_html(sparse_pca(many, n_nonzero_coefs=2, certify=False), table=many)
    assert "1,500 of 3,000 are drawn" in page
    assert 'class="ramp"' in page
    assert 'class="biplot"' not in page
    assert "Do components say the same?" not in page


def test_a_report_of_texts_speaks_of_documents_and_of_those_at_one_place():
    texts = read([*["red green red", "blue grey blue grey"] * 2, *["something else"] * 8])
    page = report_html(sparse_pca(texts, n_components=2, n_nonzero_coefs=2), table=texts)
    for said in ("Every mark is a document", "Words over documents", "words used, in 2 components",
                 "documents that score highest", "up to 8 lie at one place"):  # fmt: skip
        assert said in page
    assert "samples that" not in page


def test_a_report_without_data_has_no_samples():
    from tests.report.test_report import CASES

    for case in CASES.values():
        page = report_html(case)
        structure = Structure()
        structure.feed(page)
        assert structure.open == []
        assert 'id="samples"' not in page


def test_path_and_choice_are_shown_when_they_are_there(table):
    chosen = choose(
        table, n_components=[1, 2], n_nonzero_coefs=[1, 2], folds=2, permutations=0, certify=False
    )
    along = [sparse_pca(table, n_nonzero_coefs=s, certify=False) for s in (1, 2, 3)]
    page = report_html(along[-1], along=along, choice=chosen)
    assert 'class="spc-best"' in page
    assert html.escape(chosen.reason) in page
    assert '<svg class="path"' in page
    assert page.count('<circle class="value"') == 3


PROBE = """<script>
window.addEventListener("load", function () {
  const found = {};
  const rows = () => Array.from(document.querySelectorAll("#table tbody tr"));
  const shown = () => rows().filter((row) => !row.hidden);
  const heads = document.querySelectorAll("#table th button");
  const weights = () => rows().map((row) => Number(row.cells[2].dataset.value));
  const ordered = (list) => list.every((x, i) => i === 0 || list[i - 1] <= x);
  heads[2].click();
  found.ascending = ordered(weights());
  heads[2].click();
  found.descending = ordered(weights().reverse());
  heads[1].click();
  const names = rows().map((row) => row.cells[1].textContent);
  found.named = names.every((x, i) => i === 0 || names[i - 1].localeCompare(x) <= 0);
  const search = document.getElementById("search");
  search.value = "DELTA";
  search.dispatchEvent(new Event("input"));
  found.search = shown().length === 1 && shown()[0].cells[1].textContent === "delta";
  search.value = "";
  search.dispatchEvent(new Event("input"));
  const only = document.getElementById("only");
  only.value = "2";
  only.dispatchEvent(new Event("change"));
  found.filter = shown().length === 2 && shown().every((row) => row.cells[0].textContent === "2");
  found.count = document.getElementById("count").textContent;
  found.wide = document.documentElement.scrollWidth <= window.innerWidth;
  found.meant = Array.from(document.querySelectorAll(".verdict td:nth-child(3)"))
    .every((cell) => cell.offsetWidth > 0);
  const stage = document.querySelector(".stage");
  const marks = Array.from(stage.querySelectorAll(".points path"));
  const tip = document.getElementById("tip");
  const press = (key) => stage.dispatchEvent(new KeyboardEvent("keydown", { key: key }));
  const place = () => marks.map((mark) => mark.getAttribute("transform")).join();
  const before = place();
  const pair = document.getElementById("pair");
  pair.value = "1-2";
  pair.dispatchEvent(new Event("change"));
  found.moved = place() !== before;
  const arrows = Array.from(document.querySelectorAll(".arrows"));
  found.arrows = arrows.filter((g) => !g.hasAttribute("hidden")).map((g) => g.dataset.pair)
    .join() === "1-2";
  press("ArrowRight");
  const first = tip.textContent;
  found.told = !tip.hidden && first.includes("<b>sample ") && first.includes("component 3");
  press("ArrowRight");
  found.walked = tip.textContent !== first;
  press("Escape");
  found.left = tip.hidden;
  const box = marks[4].getBoundingClientRect();
  stage.dispatchEvent(new PointerEvent("pointermove", {
    clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
  found.hovered = !tip.hidden && tip.textContent.includes("<b>sample 4</b>")
    && tip.textContent.includes("<" + "/script>");
  const key = document.querySelector(".key");
  key.click();
  found.hidden = marks.filter((mark) => mark.hasAttribute("hidden")).length === 15
    && key.getAttribute("aria-pressed") === "false";
  found.errors = window.failures;
  document.title = JSON.stringify(found);
});
</script></body>"""
TRAP = "<script>window.failures = []; window.onerror = (m) => window.failures.push(m);</script>"


@pytest.mark.processes
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: apt install chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_works_in_a_browser(page, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(page.replace("<title>", TRAP + "<title>").replace("</body>", PROBE))
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/b",
        f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout, flags=re.DOTALL)
    assert title, done.stderr
    found = json.loads(html.unescape(title.group(1)))
    assert found.pop("errors") == []
    assert found.pop("count") == "2 of 6 loadings"
    assert all(found.values()), found


def test_what_else_is_nearly_as_good_and_what_other_rows_give_are_shown(table):
    asked = {"n_components": 2, "n_nonzero_coefs": 2}
    near = alternatives(table, **asked, force=1)
    again = stability(table, **asked, n_resamples=4)
    page = report_html(near.result, alternatives=near, stability=again)
    assert "Is it the only answer?" in page
    assert "proved, none is missing" in page
    assert "Would other rows give the same?" in page
    assert "comes back" in page
    other = sparse_pca(table, n_components=1, n_nonzero_coefs=2)
    with pytest.raises(ValueError, match="alternatives belongs to another answer"):
        report_html(other, alternatives=near)
