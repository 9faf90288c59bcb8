"""README.md of the library, from its list."""

from __future__ import annotations

from textwrap import fill

from benchmarks.library.archive import OPTIMAL, Archive, Entry
from benchmarks.library.instances import INSTANCES, SOURCES
from benchmarks.library.published import PUBLISHED, SCALES, Published, Scale

HEAD = """# The library: instances, best values, best bounds, proofs

An instance is a matrix, prepared as stated, and a question: components x nonzeros, disjoint
supports, loadings of any sign or nonnegative. A value is the sum of the largest x'Ax of unit x on
each support; covariances A divide by the number of samples, and what is not centred has second
moments. `library.jsonl` has the best value and the supports of each, and the best bound of which a
proof is kept, or, of the instances without one, the best that was brought here. It is not always
the best that is known: `benchmarks/joint` has smaller gaps of long runs whose proofs take 13 to
48 MB (KOS and NIPS 8 x 15, NIPS 8 x 10, Mfeat, Arcene, Isolet and Leukemia 5 x 40). `results/` has
the result itself, and with it the proof where that is at most 3 MB, compressed (in files of at most
900 kB: `.2` and so on are the rest of a file that is longer). A proof that is larger than that is
kept with coarser multipliers where these prove a bound that is a quarter of the gap larger.

    make library                                         recheck all of it with `verify` alone
    python -m benchmarks.library check digits-1x10       the same, of one instance
    python -m benchmarks.library make leukemia-1x150     solve an instance once more
    python -m benchmarks.library take NAME RESULT.json   an improvement that `Result.save` wrote

`make library` fails, and says what is wrong, if a line of the list is missing, listed twice, of no
instance or of wrong types; if value, bound, supports or `proved_by` are not those of the stored
result; if `verify` refuses that; if the proof is not where the list says so; if a bound is below a
value that others have published; or if a file in `results/` belongs to no line. "-" in the last
column but one means that no proof is kept: the value is rechecked then and the bound is **not**,
and `make library` counts these as "bound not rechecked". Which instances may lack a proof is
written in the code (`WITHOUT_PROOF` in `archive.py`); any other without one is wrong. Their proofs
are larger than 3 MB as they are kept here (13 to 48 MB as they are written), or the bounds were
found when proofs up to 900 kB were kept; a run that proves the bound again (`make NAME`) brings the
proof, and its name leaves that list.
{count}

`make NAME` starts from the known components with the effort recorded in the stored result:
`certify` and, with "full", a time limit of 120 to 600 s. `--certify full`, `--seconds 180` (for
each) and `--minutes 10` (for all) ask for another. A run that a time limit ended depends on the
machine, and may end with a larger bound. `--proofs FOLDER` saves every result with its proof,
however large, and `check NAME --proofs FOLDER` rechecks with it a bound whose proof is not kept
here. `--folder` names another library. Data are read from the folder named by `SPARCIPAL_DATA`; the
table of sources has the files, and those of scikit-learn are always there. Another version of a
file shows as wrong values.

A result to send in is made with `sparse_pca(**INSTANCES[NAME].question())`, `INSTANCES` from
`benchmarks.library.instances`, best with `init=` the components that are known
(`benchmarks.library.archive.Archive().result(NAME)`), and saved with `Result.save`. An improvement
is a larger value or a smaller bound, rechecked before it replaces anything; a pull request consists
of what `take` changed. `take` says why something is not taken: another question, not proved, not
better. A bound that comes with its proof replaces one without, if the gap grows by at most a
quarter: what can be rechecked is worth more here than what cannot.
"""
SAID = """\
As printed; ours are the best value, the gap of the list, and how it was made (CPU seconds on a
machine that other work shared). Only figures that were read in a source are here. Li & Xie: the
files that accompany their paper (values to eight digits here, times there in whole seconds, with
Gurobi and Mosek; no gaps of the exact methods). Their relaxations (8) and (16) are the first and
the second one of `docs/methods/relaxations.rst`, (17) is DSPCA, and (13) is the minimum over
0 <= m_i <= A_ii of lambda_max(sum_i (1 - m_i / A_ii) a_i a_i^T) plus the s largest m_i, where
A_ij = a_i^T a_j. That minimum is 4 at s = 4, a gap of 36.17 %, where 43.6 % is printed: their
subgradient method stopped before it. From s = 5 on the printed gaps of (13) are those of the
minimum to the digit. Berk & Bertsimas: the values of their tables that the tests of their software
repeat. Bertsimas, Cory-Wright & Pauphilet: the optimal values in the script that makes their table.
Gaps and times of the latter two, and the tables of Cory-Wright & Pauphilet, of Dey, Mazumder & Wang
and of Behdin & Mazumder, are not at hand ("-"). `published.py` names the files.

Where a printed optimum is above a bound that is proved here, or below our value, by more than half
a unit of its last digit, the column "said" has it. These are differences of at most 1e-5 of the
value, of solvers that stop within a tolerance; a larger one would be refused as wrong. Our proofs
of these instances are kept here."""
SCALE = """\
What abstracts, and for Li & Xie the files of their paper, say of how far they go. Beside them: the
instances of this library with loadings of any sign whose numbers of features, nonzeros and
components lie within the limits in the column "which of ours", inclusive; all of them, open ones
included. The limits are those of the words: where these name no number of nonzeros, all that the
library has count (5 to 150). A run takes seconds to minutes (`benchmarks/exact`,
`benchmarks/joint`)."""


def write_table(archive: Archive) -> None:
    entries = archive.entries()
    for entry in entries.values():
        entry.require_credible()
    shown = [entry for entry in entries.values() if entry.proof]
    optimal = sum(entry.optimal for entry in shown)
    others = [entry for entry in entries.values() if not entry.proof]
    solved = sum(entry.optimal for entry in others)
    count = (
        f"Of {len(entries)} instances {len(shown)} have their proof here, {optimal} of them within "
        f'{OPTIMAL:.0e} of the value ("optimal"). The {len(others)} others, {solved} of them '
        f"optimal by their own account: {', '.join(entry.name for entry in others)}."
    )
    lines = [
        HEAD.format(count=fill(count, 100, break_on_hyphens=False)),
        "## Sources",
        "",
        "| name | features | from | preparation | file |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {s.name} | {s.n_features:,} | {s.origin} | {s.preparation} "
        f"| {s.file or 'none: scikit-learn has it'} |"
        for s in SOURCES.values()
    ]
    lines += ["", "## Instances", ""]
    lines += [
        "| instance | value | bound | gap | by | proof | made |",
        "| --- | --- | --- | --- | --- | --- | --- |",
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
            cells = (*row[:-1], _said(row, ours), f"{ours.value:.8g}", _gap(ours), ours.made)
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _said(row: Published, ours: Entry) -> str:
    """What is said of a printed figure, and if it is an optimum that cannot be one."""
    said = [row.said] if row.said else []
    if row.value != "-" and row.said != "no bound":
        if row.least > ours.bound:
            proved = "proved " if ours.proof else ""
            said.append(f"above the {proved}bound {ours.bound:.8g}")
        elif row.least + 2 * row.half < ours.value:
            said.append(f"below the value {ours.value:.9g}")
    return "; ".join(said)


def _scales(entries: dict[str, Entry]) -> list[str]:
    """The solved share and the largest gap of the instances that an abstract would be about."""
    lines = ["", "## Scale, by author", "", SCALE, ""]
    head = ("author", "said", "which of ours", "instances", "optimal", "median gap", "largest gap")
    lines += ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for scale in SCALES:
        chosen = sorted(
            (entries[name] for name in INSTANCES if name in entries and _within(scale, name)),
            key=lambda entry: entry.gap,
        )
        cells = (
            scale.author,
            scale.said,
            scale.rule,
            str(len(chosen)),
            str(sum(entry.optimal for entry in chosen)),
            _gap(chosen[len(chosen) // 2]),
            _gap(chosen[-1]),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _within(scale: Scale, name: str) -> bool:
    instance = INSTANCES[name]
    sizes = (instance.source.n_features, instance.s, instance.k)
    limits = (scale.features, scale.nonzeros, scale.components)
    return not instance.nonnegative and all(
        least <= size <= most for size, (least, most) in zip(sizes, limits)
    )


def _row(archive: Archive, entry: Entry) -> str:
    stored = sum(part.stat().st_size for part in archive.parts(entry.name))
    size = f"{stored / 1000:.0f} kB" if entry.proof else "-"
    cells = (
        entry.name,
        f"{entry.value:.8g}",
        f"{entry.bound:.8g}",
        _gap(entry),
        entry.proved_by,
        size,
        entry.made,
    )
    return "| " + " | ".join(cells) + " |"


def _gap(entry: Entry) -> str:
    return "optimal" if entry.optimal else f"{100 * entry.gap:.2g} %"
