"""README.md of the library, from its list."""

from __future__ import annotations

from benchmarks.library.archive import Archive, Entry
from benchmarks.library.instances import INSTANCES, SOURCES
from benchmarks.library.published import PUBLISHED, SCALES

# The relative gap below which an instance counts as solved.
OPTIMAL = 2e-6

HEAD = """# The library: instances, best values, best bounds, proofs

An instance is a matrix, prepared as stated, and a question: components x nonzeros, disjoint
supports, loadings of any sign or nonnegative. `library.jsonl` has the best value, the best bound
and the supports of each, `results/` the result itself, and with it the proof where that is at most
900 kB, compressed: larger ones would make the repository unpleasant to clone.

    make library                                         recheck all of it with `verify` alone
    python -m benchmarks.library make leukemia-1x150     solve an instance once more
    python -m benchmarks.library take NAME RESULT.json   an improvement that `Result.save` wrote

A wrong value, bound, support or proof is refused by name, and `make library` then fails. An
improvement is a larger value or a smaller bound; it is rechecked before it replaces anything, and a
pull request consists of what `take` changed. Data are read from the folder named by
`SPARCIPAL_DATA`; those of scikit-learn are always there. "-" in the last column means that the
proof is larger than what is kept here, so that only the value is rechecked; `make NAME` makes it
again in seconds to a few minutes. {count}

A result to send in is made with `sparse_pca` and the question of the instance, best with `init=`
the components that are known (`benchmarks.library.archive.Archive().result(NAME)`), and saved with
`Result.save`. `take` says why something is not taken: another question, not proved, not better. A
bound that comes with its proof replaces one without, if it is larger by at most 1e-5.
"""
SAID = """\
As printed; ours are the best value, the gap that is proved, and how it was made (CPU seconds on a
machine that other work shared). Only figures that were read in a source are here. Li & Xie: the
files that accompany their paper (times there in whole seconds, with Gurobi and Mosek). Berk &
Bertsimas: the values of their tables that the tests of their software repeat. Bertsimas,
Cory-Wright & Pauphilet: the optimal values in the script that makes their table. Gaps and times of
the latter two, and the tables of Cory-Wright & Pauphilet, of Dey, Mazumder & Wang and of Behdin &
Mazumder, are not at hand ("-"). `published.py` names the files."""
SCALE = """\
What abstracts, and for Li & Xie the files of their paper, say of how far they go. Beside them: the
instances of this library of that size, signed, one component unless said otherwise. A run takes
seconds to minutes (`benchmarks/exact`, `benchmarks/joint`)."""


def write_table(archive: Archive) -> None:
    entries = archive.entries()
    proofs = sum(entry.proof for entry in entries.values())
    optimal = sum(entry.gap < OPTIMAL for entry in entries.values())
    count = f"Of {len(entries)} instances, {optimal} are solved and {proofs} have their proof here."
    lines = [
        HEAD.format(count=count),
        "## Sources",
        "",
        "| name | features | from | preparation |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {s.name} | {s.n_features:,} | {s.origin} | {s.preparation} |" for s in SOURCES.values()
    ]
    lines += ["", "## Instances", ""]
    lines += [
        "| instance | value | bound | gap | by | proof |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(archive, entries[name]) for name in INSTANCES if name in entries]
    lines += [*_published(entries), *_scales(entries)]
    (archive.folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _published(entries: dict[str, Entry]) -> list[str]:
    head = ("instance", "author", "method", "printed", "gap", "seconds", "said")
    lines = ["", "## Published beside ours", "", SAID, ""]
    lines += ["| " + " | ".join((*head, "ours", "our gap", "made")) + " |", "| --- " * 10 + "|"]
    for row in PUBLISHED:
        if row.instance in entries:
            ours = entries[row.instance]
            cells = (*row, f"{ours.value:.8g}", _gap(ours), ours.made)
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _scales(entries: dict[str, Entry]) -> list[str]:
    """The solved share and the largest gap of the instances that an abstract would be about."""
    lines = ["", "## Scale, by author", "", SCALE, ""]
    lines += ["| author | said | instances here | optimal | median gap | largest gap |"]
    lines += ["| --- " * 6 + "|"]
    for scale in SCALES:
        (few, many), (least, most) = scale.features, scale.nonzeros
        chosen = [
            entries[name]
            for name, instance in INSTANCES.items()
            if name in entries
            and few <= instance.source.n_features <= many
            and least <= instance.s <= most
            and (instance.k > 1) == scale.several
            and not instance.nonnegative
        ]
        gaps = sorted(entry.gap for entry in chosen)
        closed = sum(gap < OPTIMAL for gap in gaps)
        middle = gaps[len(gaps) // 2]
        lines.append(
            f"| {scale.author} | {scale.said} | {len(chosen)} | {closed} | {_percent(middle)} "
            f"| {_percent(gaps[-1])} |"
        )
    return lines


def _row(archive: Archive, entry: Entry) -> str:
    size = f"{archive.file(entry.name).stat().st_size / 1000:.0f} kB" if entry.proof else "-"
    cells = (
        entry.name,
        f"{entry.value:.8g}",
        f"{entry.bound:.8g}",
        _gap(entry),
        entry.proved_by,
        size,
    )
    return "| " + " | ".join(cells) + " |"


def _gap(entry: Entry) -> str:
    return _percent(entry.gap)


def _percent(gap: float) -> str:
    return "optimal" if gap < OPTIMAL else f"{100 * gap:.2g} %"
