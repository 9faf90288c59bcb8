"""What was asked of which exact matrix; docs/proof_format.rst, "What is claimed"."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from .algebra import block, root
from .gaps import paired, treated
from .reading import EPS, Matrix, exact, need, power_of_two


@dataclass(frozen=True)
class Ask:
    """What was asked of which matrix; the matrix is divided by the unit of the proofs."""

    A: Matrix
    sizes: tuple[int, ...]
    total: int | None = None
    nonnegative: bool = False
    supports: str = "disjoint"
    adjusted: bool = False
    uncorrelated: bool = False
    include: tuple[frozenset[int], ...] = ()
    exclude: frozenset[int] = frozenset()
    given: bool = False
    whole: bool = True  # false when constant features were left out
    unit: Fraction = Fraction(1)
    moments: tuple[Fraction, ...] = ()
    n: int = 0
    scaled: bool = False
    columns: Matrix = field(default_factory=list)  # of the table, A = their products; or nothing

    @property
    def p(self) -> int:
        """The number of features."""
        return len(self.A)

    @property
    def k(self) -> int:
        """The number of components."""
        return len(self.sizes)

    @property
    def s(self) -> int:
        """The most nonzeros of a component."""
        return max(self.sizes)

    @property
    def m(self) -> int:
        """The most features of all components together."""
        if self.supports == "common":
            return self.s
        return sum(self.sizes) if self.total is None else self.total

    @property
    def overlapping(self) -> bool:
        """Whether two components may share a feature."""
        return self.k > 1 and self.supports != "disjoint"

    @property
    def kinds(self) -> set[str]:
        """What the components are, as far as bounds depend on it."""
        found = {self.supports} - {"free"}
        if self.adjusted or self.uncorrelated or self.supports == "common":
            found.add("adjusted")
        return found | ({"orthogonal"} if found & {"disjoint", "common"} else set())

    @property
    def anchors(self) -> frozenset[int]:
        """The features that a single component counts among its own."""
        return self.include[0] if self.include and self.k == 1 else frozenset()

    def strict(self, level: Fraction) -> Fraction:
        """A level that holds for the roots of scales, which are known to 200 bits."""
        return level / (1 + (Fraction(1, 2**180) if self.scaled else 0))

    def among(self, kept: list[int]) -> Ask:
        """The same question about some features, numbered anew."""
        columns = [self.columns[j] for j in kept] if self.columns else []
        place = {j: i for i, j in enumerate(kept)}
        need(all(j in place for own in self.include for j in own), "an anchor is left out")
        include = tuple(frozenset(place[j] for j in own) for own in self.include)
        exclude = frozenset(place[j] for j in self.exclude if j in place)
        part = replace(self, A=block(self.A, kept), columns=columns)
        return replace(part, include=include, exclude=exclude)

    def alone(self, s: int, anchors=frozenset()) -> Ask:
        """The same question for one component."""
        one = replace(self, sizes=(s,), total=None, supports="disjoint", adjusted=False)
        return replace(one, uncorrelated=False, include=(frozenset(anchors),))


def rows_of(data) -> list[list[float]]:
    """A table or a matrix as a list of rows."""
    return [[float(x) for x in row] for row in data]


def asked(document: dict) -> Ask:
    """The question of a document, without its matrix."""
    need(document["sparcipal"] == 2, "another format")
    settings, p = document["settings"], document["n_features"]
    sizes, total = tuple(settings["n_nonzero_coefs"]), settings.get("n_nonzero_total")
    need(len(sizes) == settings["n_components"] and all(1 <= s <= p for s in sizes), "the sizes")
    supports, adjusted = settings["supports"], settings["objective"] == "adjusted"
    wanted = {"free": [True], "orthogonal": [False], "common": [False], "disjoint": [True, False]}
    need(adjusted in wanted[supports], "an objective that does not go with the supports")
    include = tuple(frozenset(own) for own in settings.get("include") or ())
    exclude = frozenset(settings.get("exclude") or ())
    named = exclude.union(*include)
    need(all(isinstance(j, int) and 0 <= j < p for j in named), "constraints on other features")
    ask = Ask([], sizes, total, settings["nonnegative"], supports, adjusted)
    ask = replace(ask, uncorrelated=settings["uncorrelated"], include=include, exclude=exclude)
    need(not ask.nonnegative or supports not in ("orthogonal", "common"), "signs are free here")
    need(not ask.nonnegative or not ask.uncorrelated, "signs are free here")
    need(supports != "common" or (set(sizes) == {ask.s} and ask.k <= ask.s), "a common set")
    need(total is None or (supports == "disjoint" and total >= ask.k), "the total")
    need(total is None or ask.s >= min(total - ask.k + 1, p), "sizes below the total")
    need(not include or (len(include) == ask.k and total is None), "anchors of each component")
    need(not include or not ask.overlapping, "components with anchors overlap")
    return replace(ask, unit=power_of_two(document["certificate"]["unit"]))


def question(document: dict, X, covariance, sample_weight) -> Ask:
    """Form the exact matrix, and compare with it what the document says of data and settings."""
    ask, settings, p = asked(document), document["settings"], document["n_features"]
    rule = settings.get("missing")
    if X is None:
        need(document["n_samples"] is None and not rule, "samples are named for a covariance")
        return of_matrix(ask, rows_of(covariance), document)
    rows = rows_of(X)
    need(settings["sample_weight"] == (sample_weight is not None), "sample weights")
    weights = None if sample_weight is None else [float(w) for w in sample_weight]
    if rule == "pairwise":
        return of_matrix(ask, paired(document, rows, weights), document)
    need(not document["certificate"]["repair"], "a repair of covariances that need none")
    rows, weights = treated(rows, weights, rule)
    n, ask = len(rows), replace(ask, scaled=settings["scale"])
    light = bool(weights) and bool(document["certificate"]["screening"])
    counted = sum(w > 0 for w in weights) if light else n
    need(counted == document["n_samples"], "another number of samples")
    exactly = [exact(w) for w in (weights or [1.0] * n)]
    A, means, moments = moments_of(rows, exactly, settings["center"])
    need(len(means) == p, "another number of features")
    tolerance = (2 * n + 40) * EPS
    for j in range(p):
        said = exact(document["mean"][j]) if settings["center"] else Fraction(0)
        size = tolerance * (abs(means[j]) + root(moments[j]))
        need(abs(said - means[j] * settings["center"]) <= size, f"the mean of feature {j}")
        said = exact(document["scale"][j])
        wanted = A[j][j] if ask.scaled and A[j][j] else Fraction(1)
        off = abs(said - root(wanted))
        need(off <= 2 * tolerance * (root(moments[j]) + root(wanted)), "a scale")
    by = [Fraction(1)] * p
    if ask.scaled:
        by = [1 / root(A[j][j]) if A[j][j] else Fraction(1) for j in range(p)]
        A = [[A[i][j] * by[i] * by[j] for j in range(p)] for i in range(p)]
    ask = replace(of_exact(ask, A, document, n, sum(moments)), moments=tuple(moments), n=n)
    if weights is not None:
        return ask
    # without the root of n times the unit, which every product of two is divided by
    shift = [mean * settings["center"] for mean in means]
    columns = [[(exact(row[j]) - shift[j]) * by[j] for row in rows] for j in range(p)]
    return replace(ask, columns=columns)


def of_matrix(ask: Ask, rows: list[list[float]], document: dict) -> Ask:
    """The question about a matrix that is given, the mean of it and its transpose."""
    A, p = [[exact(x) for x in row] for row in rows], document["n_features"]
    need(len(A) == p and all(len(row) == p for row in A), "another number of features")
    A = [[(A[i][j] + A[j][i]) / 2 for j in range(p)] for i in range(p)]
    return replace(of_exact(ask, A, document, 0, 0), given=True)


def of_exact(ask: Ask, A: Matrix, document: dict, n: int, moments) -> Ask:
    """The question about an exact matrix, in its unit; the trace is what is said of it."""
    trace = sum(A[j][j] for j in range(len(A)))
    off = abs(exact(document["total_variance"]) - trace)
    need(off <= (40 * n + 400 + 8 * len(A)) * EPS * (trace + moments), "the total variance")
    return replace(ask, A=[[x / ask.unit for x in row] for row in A])


def moments_of(rows, weights, center) -> tuple[Matrix, list[Fraction], list[Fraction]]:
    """Covariance, means and second moments; integers are multiplied, which is quick."""
    p, mass = len(rows[0]), sum(weights)
    grid = max([Fraction(x).denominator for row in rows for x in row])
    columns = [[int(Fraction(row[j]) * grid) for row in rows] for j in range(p)]
    lift = math.lcm(*[w.denominator for w in weights])
    heavy = [int(w * lift) for w in weights]
    weighted = [[w * x for w, x in zip(heavy, column)] for column in columns]
    whole = int(mass * lift)
    sums = [sum(column) for column in weighted]
    A = [[Fraction(0)] * p for _ in range(p)]
    moments = []
    for i in range(p):
        for j in range(i + 1):
            product = sum(map(int.__mul__, weighted[i], columns[j])) * whole
            if i == j:
                moments.append(Fraction(product, (whole * grid) ** 2))
            product -= sums[i] * sums[j] if center else 0
            A[i][j] = A[j][i] = Fraction(product, (whole * grid) ** 2)
    return A, [Fraction(t, whole * grid) for t in sums], moments
