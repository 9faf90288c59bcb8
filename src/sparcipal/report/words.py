"""Text, HTML and the command line share these figures and sentences, so that all say the same.

Values are rounded down, bounds and gaps up, so that no figure looks better than it is.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..problem.result import Certificate, Result


# A gap above this is large: the answer may be far from the best one.
LARGE = 0.05
BEST = 1e-4  # up to this gap an answer within its tolerance is called the best
FEW = 3  # features that are named where a sentence counts them
PICTURED = 1e-5  # gaps below 0.001 % are told as that
FAR = 0.25  # gaps above it are told as a share of the best possible
# Value and bound that differ by less are printed alike, with this number of digits.
SAME, AGREED = 5e-12, 11
# What a bound is called in words; the name in brackets is that of its proof and of its page.
BOUNDS = {
    "trace": "the sum of variances",
    "eigenvalues": "the eigenvalues of the covariance",
    "gershgorin": "row sums of the covariance",
    "frobenius": "norms of the covariance",
    "clip": "a relaxation of the signs",
    "enumeration": "trying every support for its variance",
    "parts": "one bound per component",
    "adjusted": "an ellipsoid around all scores",
    "orthogonal": "rewards for features that are shared",
    "common": "branch and bound on sets of features",
    "neighbour": "the proof for fewer nonzeros, scaled",
    "tree": "branch and bound",
    "kyfan": "a joint relaxation",
    "configuration": "prices on features",
    "labels": "components told apart",
    "lowrank": "a search over a low-rank sketch",
    "ellipsoid": "an ellipsoid around the features",
    "dspca-dual": "a semidefinite relaxation",
    "greedy-dual": "the dual of the greedy method",
}

NOTE = "note of the solver: "
READ = "note of the fit: "  # on how the table was read; `verify` rechecks neither
REDUNDANT = 0.5  # correlation of scores above which another objective is advised
REPEATED = 0.95  # share of the sum of variances below which adjusted variance is told beside it
ORDERED = 8  # up to so many components, adjusted variances are those of the best order


def rounded(x: float, digits: int, mode: str = ROUND_HALF_EVEN) -> str:
    """Round `x` to significant digits in the given mode, without trailing zeros."""
    if not math.isfinite(x):
        return "unknown" if math.isnan(x) else ("infinite" if x > 0 else "-infinite")
    exact = Decimal(repr(float(x)))
    if exact == 0:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, rounding=mode)):.{digits}g}"


def at_least(x: float) -> str:
    return rounded(x, 6, ROUND_FLOOR)


def at_most(x: float) -> str:
    return rounded(x, 6, ROUND_CEILING)


def figures(value: float, bound: float) -> tuple[str, str]:
    """Return a value, rounded down, and its bound, rounded up, with so many digits that what
    rounding adds to their distance is a small part of it."""
    if not (math.isfinite(value) and math.isfinite(bound) and value > 0):
        return at_least(value), at_most(bound)
    gap = bound / value - 1
    if gap < SAME:
        # They agree in every digit shown, so that neither looks better than it is.
        same = rounded(value, AGREED)
        return same, same
    digits = max(6, min(15, 3 - math.floor(math.log10(gap))))
    return rounded(value, digits, ROUND_FLOOR), rounded(bound, digits, ROUND_CEILING)


def variance(x: float) -> str:
    """Return a component's variance for a table, in few digits and rounded down."""
    return rounded(x, 5, ROUND_FLOOR)


def gap_percent(gap: float) -> str:
    """Return a gap in percent, rounded up; an infinite one is unknown."""
    if not math.isfinite(100 * gap):
        return "unknown"
    # Rounding noise in the quotient must not lift 3 % to 3.01 %.
    return f"{rounded(float(rounded(100 * gap, 12)), 3, ROUND_CEILING)} %"


def about_percent(gap: float) -> str:
    """Return a gap for a sentence: in percent, rounded up, and not below what a reader can picture;
    the figures of a certificate have it in full."""
    return gap_percent(max(gap, PICTURED))


def least_share(gap: float) -> str:
    """Return in percent what part of the best possible is reached at least, rounded down."""
    return f"{rounded(100 / (1 + gap), 3, ROUND_FLOOR)} %"


def share_percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "unknown"


def visible(text: str) -> str:
    """Spell out control characters, also those that change the direction of writing, so that a
    terminal does not act on them."""
    spaced = " ".join(text.splitlines()) if "\n" in text else text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in spaced)


def wrapped(sentences: Iterable[str], width: int = 100) -> list[str]:
    """Return sentences in lines that fit a terminal."""
    return [
        textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
        for text in sentences
    ]


def selected(record: dict[str, Any], threshold: float) -> str:
    """Return how a feature is selected: by all components that it is in, where one is too few."""
    if record["frequency"] >= threshold:
        return "selected"
    return f"selected: {100 * record['any_component']:.0f} % in any component"


def plain(name: str, limit: int = 40) -> str:
    """Return a feature name that is safe to print: control characters visible, long names cut."""
    safe = visible(name)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


@dataclass(frozen=True)
class Verdict:
    """A verdict says what is proved, in a headline and a sentence.

    `tone` is "proved" for an optimum, "near" for a small gap and "open" for a large one or none.
    """

    tone: str
    headline: str
    sentence: str

    @property
    def proved(self) -> bool:
        """Whether the answer is proved to be optimal."""
        return self.tone == "proved"


def is_best(certificate: Certificate) -> bool:
    """Return whether an answer is proved to be the best, and not only as near as a large `tol`
    asks."""
    return certificate.status == "optimal" and certificate.gap <= min(certificate.tol, BEST)


def ending(certificate: Certificate) -> tuple[str, str]:
    """Return how a run ended, in a word or two and in a sentence."""
    status = certificate.status
    if status != "optimal" or is_best(certificate):
        return status.value, status.sentence
    return f"within tol {gap_percent(certificate.tol)}", "the gap is within the requested tolerance"


def verdict(certificate: Certificate) -> Verdict:
    """Return the achievement: how close to the best possible the answer is proved to be."""
    gap = certificate.gap
    if not math.isfinite(gap):
        return Verdict("open", "Nothing proved", "no useful bound on the optimum is known")
    if is_best(certificate):
        exactly = "" if gap < SAME else f", to within {about_percent(gap)}"
        return Verdict(
            "proved",
            "Best possible (proved)",
            f"no components of this kind explain more{exactly}",
        )
    more = f"the best components explain at most {about_percent(gap)} more than these"
    if gap > FAR:
        return Verdict("open", f"At least {least_share(gap)} of the best possible (proved)", more)
    tone = "near" if gap <= LARGE else "open"
    return Verdict(tone, f"Within {about_percent(gap)} of the best possible (proved)", more)


def bound_name(name: str) -> str:
    """Return what a bound is, in words, with its technical name in brackets."""
    return f"{BOUNDS[name]} ({name})" if name in BOUNDS else name


def question(result: Result) -> str:
    """Return in one line what was asked."""
    settings = result.settings
    k = len(result.supports)
    parts = [f"{k} sparse component{'s' if k != 1 else ''}"]
    limit = settings.get("n_nonzero_coefs")
    sizes = [limit] * k if isinstance(limit, int) else list(limit or [])
    if settings.get("n_nonzero_total"):
        parts.append(f"at most {settings['n_nonzero_total']} nonzeros in all")
    elif sizes and len(set(sizes)) == 1:
        each = " each" if k > 1 else ""
        parts.append(f"at most {sizes[0]} nonzero{'s' if sizes[0] != 1 else ''}{each}")
    elif sizes:
        parts.append(f"at most {', '.join(map(str, sizes))} nonzeros")
    if k > 1 and settings.get("supports"):
        parts.append(f"{settings['supports']} supports")
    if settings.get("nonnegative"):
        parts.append("nonnegative")
    if settings.get("uncorrelated"):
        parts.append("uncorrelated")
    if k > 1 and settings.get("objective") == "adjusted":
        parts.append("adjusted variances")
    return visible(", ".join([*parts, *limits(result)]))


def limits(result: Result) -> list[str]:
    """Say which features a question excludes and which it demands; all claims are about components
    that keep to that."""
    excluded, included = (result.settings.get(name) for name in ("exclude", "include"))
    lists = included if isinstance(included, list | tuple) else ()
    required = [f for own in lists if isinstance(own, list | tuple) for f in own]
    asked = (list(excluded) if isinstance(excluded, list | tuple) else [], required)
    return [
        f"{len(features)} feature{'s' * (len(features) > 1)} {what} ({_first(result, features)})"
        for features, what in zip(asked, ("excluded", "required"))
        if features
    ]


def _first(result: Result, features: list[Any]) -> str:
    """Return the names of the first of some features, and how many more there are."""
    known = (type(f) is int and 0 <= f < result.n_features for f in features[:FEW])
    shown = [plain(result.feature_name(f)) if k else "?" for f, k in zip(features, known)]
    more = [f"{len(features) - FEW:,} more"] if len(features) > FEW else []
    return ", ".join(shown) + "".join(f" and {told}" for told in more)


def data(result: Result) -> str:
    """Describe in one line the data and what was done to them."""
    if result.n_samples is None:
        return f"a given covariance of {result.n_features} features"
    treated = ["centred" if result.settings.get("center", True) else "not centred"]
    if result.settings.get("scale"):
        treated.append("scaled to unit variance")
    counted = _counted(result.info.get("texts"))
    rows, columns = ("documents", "words") if counted else ("samples", "features")
    shape = f"{result.n_samples} {rows} x {result.n_features} {columns}"
    return f"{shape}, {', '.join([*counted, *treated])}"


def _counted(texts: Any) -> list[str]:
    """Say how the words of texts were counted; nothing for other data."""
    options = texts.get("options") if isinstance(texts, dict) else None
    if not isinstance(options, dict):
        return []
    said = [visible(f"weighted by {options.get('weighting', 'counts')}")]
    if options.get("normalize"):
        said.append("normalized")
    stop = options.get("stop_words", "english")
    if stop is not None:
        said.append(
            "without stop words" if isinstance(stop, list) else "without English stop words"
        )
    return said


def told(result: Result) -> list[str]:
    """Return the sentences on what was set aside, filled or converted when the table was read, told
    as such, and on required features that no component shows."""
    notes = result.info.get("notes", ())
    known = notes if isinstance(notes, list | tuple) else []
    said = [READ + visible(note) for note in known if isinstance(note, str)]
    return said + _unloaded(result)


def _unloaded(result: Result) -> list[str]:
    """Name the required features whose best loading is 0, so that they are in no support."""
    included = result.settings.get("include")
    asked = included if isinstance(included, list | tuple) else ()
    several = len(result.supports) > 1
    return [
        f"required, loading 0: {plain(result.feature_name(f))}"
        + (f" (component {j + 1})" if several else "")
        for j, (own, support) in enumerate(zip(asked, result.supports))
        for f in (own if isinstance(own, list | tuple) else ())
        if type(f) is int and 0 <= f < result.n_features and f not in support
    ]


def notes(result: Result) -> list[str]:
    """Return the sentences of `told`, and what the figures suggest."""
    return [*told(result), *_unequal(result), *redundancy(result)]


def repeated(result: Result) -> bool:
    """Return whether the sum of variances counts much in several components: their adjusted
    variance, which is told beside it then, is less."""
    if len(result.supports) == 1:
        return False
    return result.adjusted_variance < REPEATED * result.value  # an unknown one is nan


def redundancy(result: Result) -> list[str]:
    """Return how far components repeat each other, and what to do if that is a lot."""
    correlation, adjusted = result.largest_correlation, result.adjusted_variance
    if len(result.supports) == 1 or not (math.isfinite(correlation) and math.isfinite(adjusted)):
        return []
    order = "the best" if len(result.supports) <= ORDERED else "this"
    whole = result.total_variance
    share = f", {share_percent(adjusted / whole)} of all variance" if whole > 0 else ""
    told = [
        f"the scores of two components correlate by {correlation:.2f} at most; what is new in each "
        f"beyond those before it, in {order} order, adds up to {at_least(adjusted)}{share} "
        "(adjusted variance)"
    ]
    if correlation > REDUNDANT and result.settings.get("objective") == "sum":
        # adjusted variance is asked for with disjoint or free supports only, and takes no anchors
        # of single components and no total
        settings = result.settings
        apart = settings.get("supports", "disjoint") == "disjoint"
        other = "" if apart else "supports='free', "
        flag = "--objective adjusted" if apart else "--supports free"
        advice = "components repeat each other"
        if not (settings.get("include") or settings.get("n_nonzero_total")):
            advice += (
                f": {other}objective='adjusted' ({flag}) counts what each explains "
                "beyond those before it, and leaves a wider gap"
            )
        told.append(advice)
    return told


def _unequal(result: Result) -> list[str]:
    """Return a hint when one feature has nearly all of the variance, as those of other units do."""
    weights, total = result.weights[0], result.total_variance
    if result.settings.get("scale") or result.n_samples is None or weights.size < 2:
        return []
    alone = float(result.variances[0]) > 0.9 * total > 0
    strongest = int(np.argmax(np.abs(weights)))
    if not alone or weights[strongest] ** 2 < 0.99:
        return []
    name = plain(result.feature_name(int(result.supports[0][strongest])))
    return [
        f"one feature, {name}, has nearly all of the variance; if the units differ, standardise "
        "(scale=True, --scale)"
    ]


def screening(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return three separate claims on the features that were not searched."""
    claims = certificate.screening
    if not claims:
        return []
    dropped = claims["dropped"]
    kept, rule = claims["kept"], f"not searched; what they could add is bounded by {claims['rule']}"
    if not dropped:
        return [("kept", f"{kept}", "features: all that vary")]
    rows = [("kept", f"{kept}", f"of {kept + dropped} features that vary, searched")]
    rows.append(("dropped", f"{dropped}", rule))
    unchanged = claims["support_unchanged"]
    rows.append(
        (
            "support",
            "unchanged" if unchanged else "not proved",
            "no optimum uses a dropped feature"
            if unchanged
            else f"a dropped feature may lead up to {at_most(claims['touching'])}",
        )
    )
    rows.append(("within", gap_percent(certificate.gap), "of the optimum over all features"))
    holds = claims["bound_holds"]
    rows.append(
        (
            "kept bound",
            "holds" if holds else "does not hold",
            f"for all features: {at_most(claims['inside'])} among the kept ones",
        )
    )
    return rows


def repair(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return how far covariances of pairs of features were moved to be those of some data."""
    moved, relative = certificate.repair.get("moved"), certificate.repair.get("relative")
    if not isinstance(moved, float) or not isinstance(relative, float):
        return []
    if moved == 0:
        return [
            ("repair", "none", "the pairwise covariances are positive semidefinite as they are")
        ]
    figure = rounded(moved, 3, ROUND_CEILING)
    share = gap_percent(relative)
    meaning = (
        f"added to the pairwise covariances (Frobenius norm, {share} of theirs) to make them "
        "positive semidefinite; value and bound speak of the repaired matrix"
    )
    return [("repair", figure, meaning)]


def facts(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return the figures of a certificate, each with its name and its meaning."""
    value, bound = figures(certificate.value, certificate.bound)
    rows = [
        ("value", value, "the variances of the components, added up"),
        (
            "bound",
            bound,
            "no components of this kind explain more; "
            f"proved by {bound_name(certificate.proved_by)}"
            if certificate.bounds and math.isfinite(certificate.bound)
            else "no bound was proved",
        ),
        ("gap", gap_percent(certificate.gap), "(bound - value) / value"),
        ("status", *ending(certificate)),
    ]
    rows += promises(certificate, kept=True) + screening(certificate) + repair(certificate)
    told = reported(certificate)
    if told or certificate.message:  # which stands below
        below = "" if told else " the advice below"
        rows += [("reported", "", f"by the solver, not part of the proof:{below}"), *told]
    return [(visible(name), visible(figure), visible(meaning)) for name, figure, meaning in rows]


def promises(certificate: Certificate, kept: bool) -> list[tuple[str, str, str]]:
    """Return what papers promise in advance: what value and bound show to be kept, or the rest."""
    least = certificate.value - certificate.rounding
    shown = 0.0 < certificate.bound < math.inf
    reached = 100 * least / certificate.bound if shown else 0.0
    rows = []
    for name, fraction in sorted(certificate.guarantees.items()):
        share = _percent_down(100 * fraction)
        if share > 0 and kept == (shown and fraction * certificate.bound <= least):
            meaning = f"of the optimum, in advance, by {name}"
            if kept:
                meaning += f"; reached: at least {_percent_down(reached):.3g} %"
            rows.append(("promised", f"{share:.3g} %", meaning))
    return rows


def _percent_down(percent: float) -> float:
    """Round down to three digits; 0 for what is no number."""
    return float(rounded(percent, 3, ROUND_FLOOR)) if math.isfinite(percent) else 0.0


def reported(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return what the solver reports; `verify` rechecks none of it."""
    rows = []
    if certificate.nodes:
        rows.append(("nodes", f"{certificate.nodes}", "of the branch and bound"))
    if certificate.eliminated:
        rows.append(
            ("eliminated", f"{certificate.eliminated}", "features, as unnecessary or constant")
        )
    return rows + promises(certificate, kept=False)
