"""README.md of the library, from its list."""

from __future__ import annotations

from benchmarks.library.archive import Archive, Entry
from benchmarks.library.instances import INSTANCES, SOURCES
from benchmarks.library.published import PUBLISHED

HEAD = """# The library: instances, best values, best bounds, proofs

An instance is a matrix, prepared as stated, and a question: components x nonzeros, disjoint
supports, loadings of any sign or nonnegative. `library.jsonl` has the best value, the best bound
and the supports of each, `results/` the result itself, and with it the proof where that is small
(up to 160 kB compressed).

    make library                                         recheck all of it with `verify` alone
    python -m benchmarks.library make leukemia-1x150     solve an instance once more
    python -m benchmarks.library take NAME RESULT.json   an improvement that `Result.save` wrote

A wrong value, bound, support or proof is refused by name, and `make library` then fails. An
improvement is a larger value or a smaller bound; it is rechecked before it replaces anything, and a
pull request consists of what `take` changed. Data are read from the folder named by
`SPARCIPAL_DATA`; those of scikit-learn are always there. "-" in the last column means that the
proof is larger than what is kept here; `make NAME` makes it again in seconds to a minute.
"""


def write_table(archive: Archive) -> None:
    entries = archive.entries()
    lines = [
        HEAD,
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
    lines += [
        "",
        "## Published beside ours",
        "",
        "As printed; ours are the best value and the gap that is proved.",
        "",
    ]
    lines += ["| instance | author | method | printed | said | ours | gap |", "| --- " * 7 + "|"]
    for row in PUBLISHED:
        if row.instance in entries:
            ours = entries[row.instance]
            cells = (*row, f"{ours.value:.8g}", _gap(ours))
            lines.append("| " + " | ".join(cells) + " |")
    (archive.folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    return "optimal" if entry.gap < 2e-6 else f"{100 * entry.gap:.2g} %"
