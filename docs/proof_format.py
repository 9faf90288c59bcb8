"""The page on the format of proofs, from the schema of the checker: python docs/proof_format.py"""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

from sparcipal.checker import records
from sparcipal.checker.family import Family, families
from sparcipal.checker.gate import nested, table
from sparcipal.problem.saving import FORMAT

HEAD = f"""\
The format of proofs
====================

.. This page is made by docs/proof_format.py from src/sparcipal/checker/records.py.

A saved result is a claim and, for every bound in it, the numbers from which the bound can be
recomputed from the data. This page lists every entry, what it may hold and how it is used; with
the statements of :doc:`methods/index` and the margins of :doc:`methods/rounding` it is all that
is needed to write a second checker. ``verify`` reads these very tables: an entry that is missing,
unknown, of another type or shape, or out of its range is refused before anything is computed.

Files
-----

``model.json`` is the claim, ``model.json.proof`` the same document with the ``data`` of the
bounds. Both are JSON in UTF-8 with ``"sparcipal": {FORMAT}``, the number of this format; a reader
refuses any other. Numbers may be ``NaN`` and ``Infinity`` where a table allows them. An array is
a record with ``$array`` (base64 of its bytes, little-endian, row by row), ``dtype`` (such as
``<f4``, ``<f8``, ``<i4``, ``<i8``, ``|i1``) and ``shape``. "Integer" excludes true and false,
"number" excludes integers, infinity and NaN unless said otherwise. Features are numbered from 0.
A name in italics is the size that another entry has.

What is claimed
---------------

``value`` less ``rounding`` is explained by the components, ``bound`` is not exceeded by any of
the kind asked for. Value, total variance, means and scales, the status and every bound are
recomputed. The following entries of a document are reported by the solver and no part of the
claim, nothing of them is rechecked: ``nodes``, ``eliminated`` and ``message`` of the certificate,
``n_iter``, ``note`` and ``info``, and those of the settings that no table names. The entry
``redundancy`` of ``info``, a :ref:`Redundancy` where there are several components, is rechecked if
it is there. Every promise in ``guarantees``, times ``bound``, is at most ``value`` less
``rounding``, as fractions.

Components: supports and anchors together have no more features than were asked for, with anchors in
the order of the components, otherwise the largest of them against the largest cardinality; disjoint
ones share none of these, those of a common set have no more of them than one cardinality. Loadings
have norm one up to (m + 8) units of the last place, m being their number; the product of two
orthogonal components is at most 4 (m + 8) of them, m being all cardinalities together. Products of
scores that are uncorrelated are at most 1e-10 of what they would be if all features were parallel,
and what rounding adds. For adjusted variances ``variances`` are the pivots of W'AW in the order of
the components.

The certificate's own entries (``value``, ``bound``, ``rounding``, ``tol``, ``unit``, ``status``,
``bounds``, ``guarantees``, ``screening``, ``repair``) lie in the record ``certificate``, all others
beside it.
"""

MIDDLE = """\
The proof of a bound
--------------------

Proofs are in units: the covariance A of the data, divided by ``unit``. All inequalities are meant
for exact numbers, so that every computed one needs its margin. *s* is the number of nonzeros of a
component, *k* the number of components, *p* the number of features that the bound speaks of, *P*
that of the data.

A bound holds for several disjoint components unless its text says for which others; the sections
name those kinds of components for which it holds as well. Whatever holds for disjoint components
holds for their adjusted variances, uncorrelated or not, which sum to no more than their variances:
a disjoint result of these kinds may carry any such bound, ``kyfan`` with prices for instance.
"""


ALTERNATIVES = """\
Alternatives
------------

A document of alternatives has ``result``, a result with its proof; ``within``, a number in 0..1;
``components``, one :ref:`NearbyClaim` for each component in their order; ``drops``, for several
components :ref:`costs <FeatureCost>` of the joint answer without a feature; and ``status``, which
is ``complete`` only if every list is complete at the level that was asked for. A cost has one entry
more, ``fit``: null, or a result of its own, with proof, for the same data and the same question,
but that the feature is excluded, or one more anchor. In a list that result is for one component, of
its cardinality, with its anchors; the features and anchors of the other components are excluded.
Where there are no anchors, the largest support counts for the largest cardinality. For several
components that are not disjoint, count as adjusted variances, are uncorrelated or share a total of
nonzeros ``components`` is empty, and the fits of ``drops`` are of the same kind.

The value of a cost is at most what an answer behind it explains, and its bound at least the least
that is proved: by the fit, or, where there are more features than a support may have, by the list.
Without a feature, the listed supports count that do without it after some exchange; with a feature
those that have it after some exchange; and the level. Without a fit, an outsider is worth what its
best vector with the members explains that stay. Nothing is said of a feature without a cost, but
every outsider has its two numbers, so that the largest of them holds for any other feature.
"""


KINDS = {
    "adjusted": "adjusted variances, and whatever is uncorrelated",
    "orthogonal": "orthogonal components, disjoint ones among them",
    "common": "components in a common set of features",
}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    shown: list[type] = []
    for schema in (
        records.Claim,
        records.Redundancy,
        records.Settings,
        records.ClaimedBound,
        records.Screening,
        records.Repair,
    ):
        parts.append(_section(schema, "~"))
        shown.append(schema)
    parts.append(MIDDLE)
    for schema in _with_nested(records.Among):
        if schema not in shown:
            parts.append(_section(schema, "~"))
            shown.append(schema)
    for record, names in _by_record().items():
        title = "Bound " + ", ".join(f"``{name}``" for name in names)
        parts.append(f"{title}\n{'-' * len(title)}\n")
        covers = [name for name in names if _family(name).totals]
        if covers:
            told = "Each" if len(names) > 1 else "It"
            parts.append(f"{told} holds also for a total number of nonzeros, shared among all.\n")
        for kind, meant in KINDS.items():
            holds = [f"``{name}``" for name in names if kind in _family(name).kinds]
            if holds:
                parts.append(f"For {meant}: {', '.join(holds)}.\n")
        for schema in _with_nested(record):
            if schema not in shown:
                parts.append(_section(schema, "~"))
                shown.append(schema)
    parts.append(ALTERNATIVES)
    parts += [_section(schema, "~") for schema in _with_nested(records.NearbyClaim)]
    return "\n".join(parts)


def _family(name: str) -> Family:
    return next(family for family in families() if family.name == name)


def _by_record() -> dict[type, list[str]]:
    """The names of the bounds that share a schema, in the order of the list of families."""
    found: dict[type, list[str]] = {}
    for family in families():
        found.setdefault(family.record, []).append(family.name)
    return found


def _with_nested(schema: type) -> list[type]:
    """A schema and all that its fields name, each once."""
    found = [schema]
    for inner in nested(schema):
        found += [one for one in _with_nested(inner) if one not in found]
    return found


def _section(schema: type, line: str) -> str:
    name = schema.__name__
    text = _safe(inspect.cleandoc(schema.__doc__ or ""))
    body = _safe(table(schema)) if dataclasses.fields(schema) else "It has no entry."
    return f".. _{name}:\n\n{name}\n{line * len(name)}\n\n{text}\n\n{body}\n"


def _safe(text: str) -> str:
    """Bars mean something in this language, except in literals."""
    parts = text.split("``")
    return "``".join(part if i % 2 else part.replace("|", "\\|") for i, part in enumerate(parts))


if __name__ == "__main__":
    (Path(__file__).parent / "proof_format.rst").write_text(page(), encoding="utf-8")
