"""A second checker, written from the documents alone, in exact rationals.

It shares nothing with the library: it reads the JSON text of a result as docs/proof_format.rst
describes it, forms the covariance of the data in fractions, and proves what is claimed by the
statements of docs/methods. Positive semidefiniteness is decided by an elimination LDL'. It is slow
and meant for a dozen features. NumPy finds approximate eigenvectors; nothing rests on them.

All claims are proved for the exact covariance at the level that is claimed to the user, so that
no margin for rounding appears anywhere.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from heapq import nlargest
from itertools import combinations, product

import numpy as np

EPS = Fraction(1, 2**52)
GRID = 2**220
Matrix = list[list[Fraction]]


class Refused(Exception):
    """The reason why a claim is not proved."""


def need(condition: bool, reason: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(reason)


def check(text: str, X=None, *, covariance=None, sample_weight=None) -> str:
    """Say "proved", or "refused: " with the reason, of a saved result and its data."""
    try:
        document = decode(json.loads(text))
        ask = question(document, X, covariance, sample_weight)
        check_components(document, ask)
        check_bounds(document["certificate"], ask)
    except Refused as reason:
        return f"refused: {reason}"
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"refused: malformed, {type(error).__name__} {error}"
    return "proved"


# ------------------------------------------------------------------ reading


def decode(entry):
    """Arrays become lists, row by row; everything else stays as JSON has it."""
    if isinstance(entry, list):
        return [decode(e) for e in entry]
    if not isinstance(entry, dict):
        return entry
    if "$array" not in entry:
        return {name: decode(e) for name, e in entry.items()}
    kind = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "i1": "b"}[entry["dtype"][1:]]
    raw = base64.b64decode(entry["$array"], validate=True)
    need(len(raw) == struct.calcsize("<" + kind) * math.prod(entry["shape"]), "an array's size")
    values = list(struct.unpack(f"<{len(raw) // struct.calcsize('<' + kind)}{kind}", raw))
    for width in reversed(entry["shape"][1:]):
        values = [values[i : i + width] for i in range(0, len(values), width)]
    return values


def exact(number) -> Fraction:
    """A finite number as a fraction."""
    need(not isinstance(number, bool) and math.isfinite(number), "a number that is none")
    return Fraction(number)


def vector(numbers, size: int, least=None) -> list[Fraction]:
    """So many finite numbers, none below the least."""
    found = [exact(number) for number in numbers]
    need(len(found) == size, "a list of another length")
    need(least is None or all(number >= least for number in found), "a number below its range")
    return found


def places(numbers, size: int, least: int = 1) -> list[int]:
    """Increasing places in 0..size-1."""
    need(all(isinstance(i, int) and 0 <= i < size for i in numbers), "a place out of range")
    need(sorted(set(numbers)) == list(numbers) and len(numbers) >= least, "places not increasing")
    return list(numbers)


def power_of_two(number) -> Fraction:
    """A unit."""
    found = exact(number)
    need(found > 0 and math.frexp(number)[0] == 0.5, "a unit that is no power of two")
    return found


# ------------------------------------------------------------------ the question


@dataclass(frozen=True)
class Ask:
    """What was asked of which matrix; the matrix is divided by the unit of the proofs."""

    A: Matrix
    sizes: tuple[int, ...]
    total: int | None = None
    nonnegative: bool = False
    free: bool = False
    given: bool = False
    whole: bool = True  # false when constant features were left out
    unit: Fraction = Fraction(1)
    means: tuple[Fraction, ...] = ()
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
        """The most nonzeros of all components together."""
        return sum(self.sizes) if self.total is None else self.total

    def among(self, kept: list[int]) -> Ask:
        """The same question about some features."""
        columns = [self.columns[j] for j in kept] if self.columns else []
        return replace(self, A=block(self.A, kept), columns=columns)

    def alone(self, s: int) -> Ask:
        """The same question for one component."""
        return replace(self, sizes=(s,), total=None, free=False)


def rows_of(data) -> list[list[float]]:
    """A table or a matrix as a list of rows."""
    return [[float(x) for x in row] for row in data]


def question(document: dict, X, covariance, sample_weight) -> Ask:
    """Form the exact matrix, and compare with it what the document says of data and settings."""
    need(document["sparcipal"] == 2, "another format")
    settings, certificate = document["settings"], document["certificate"]
    sizes, p = tuple(settings["n_nonzero_coefs"]), document["n_features"]
    need(len(sizes) == settings["n_components"] and all(1 <= s <= p for s in sizes), "the sizes")
    need(settings["supports"] in ("disjoint", "free"), "supports that are not read here")
    adjusted = settings["objective"] == "adjusted"
    need(adjusted == (settings["supports"] == "free"), "an objective that is not read here")
    need(not settings["uncorrelated"], "uncorrelated scores are not read here")
    unit, total = power_of_two(certificate["unit"]), settings.get("n_nonzero_total")
    ask = Ask([], sizes, total, settings["nonnegative"], settings["supports"] == "free")
    ask = replace(ask, unit=unit, given=X is None, scaled=settings["scale"] and X is not None)
    need(total is None or (not ask.free and total >= len(sizes)), "the total")
    need(total is None or max(sizes) >= min(total - len(sizes) + 1, p), "sizes below the total")
    if X is None:
        need(document["n_samples"] is None, "samples are named for a covariance")
        A = [[exact(x) for x in row] for row in rows_of(covariance)]
        A = [[(A[i][j] + A[j][i]) / 2 for j in range(p)] for i in range(p)]
        means, moments, n = [], [], 0
    else:
        rows = rows_of(X)
        n = len(rows)
        need(n == document["n_samples"], "another number of samples")
        need(settings["sample_weight"] == (sample_weight is not None), "sample weights")
        weights = [exact(w) for w in (sample_weight if sample_weight is not None else [1.0] * n)]
        A, means, moments = moments_of(rows, weights, settings["center"])
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
    need(len(A) == p and all(len(row) == p for row in A), "another number of features")
    trace = sum(A[j][j] for j in range(p))
    off = abs(exact(document["total_variance"]) - trace)
    need(off <= (40 * n + 400 + 8 * p) * EPS * (trace + sum(moments)), "the total variance")
    A = [[x / unit for x in row] for row in A]
    ask = replace(ask, A=A, means=tuple(means), moments=tuple(moments), n=n)
    if X is None or sample_weight is not None:
        return ask
    # without the root of n times the unit, which every product of two is divided by
    shift = [mean * settings["center"] for mean in means]
    columns = [[(exact(row[j]) - shift[j]) * by[j] for row in rows] for j in range(p)]
    return replace(ask, columns=columns)


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


def root(number: Fraction) -> Fraction:
    """The square root, to 200 bits."""
    shift = 2 ** max(400, 400 + 2 * (number.denominator.bit_length() // 2))
    return Fraction(math.isqrt(number.numerator * shift * shift // number.denominator), shift)


# ------------------------------------------------------------------ linear algebra


def psd(H: Matrix) -> bool:
    """Whether H is positive semidefinite, by LDL' on a grid, then if need be in fractions.

    On the grid every entry is rounded down, by less than one: the error is a matrix of norm at
    most n, which the diagonal is lowered by. So a yes is a proof.
    """
    n = len(H)
    S = [[H[i][j].numerator * GRID // H[i][j].denominator for j in range(i + 1)] for i in range(n)]
    for k in range(n):
        for i in range(k, n):
            S[i][i] -= n
        if S[k][k] <= 0:
            return n <= 16 and semidefinite(H)
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                S[i][j] -= -(-S[i][k] * S[j][k] // S[k][k])
    return True


def semidefinite(H: Matrix) -> bool:
    """Whether H is positive semidefinite, in fractions."""
    S = [list(row) for row in H]
    for k in range(len(S)):
        if S[k][k] < 0 or (S[k][k] == 0 and any(S[i][k] for i in range(k + 1, len(S)))):
            return False
        for i in range(k + 1, len(S) if S[k][k] else 0):
            factor = S[i][k] / S[k][k]
            for j in range(k + 1, len(S)):
                S[i][j] -= factor * S[k][j]
    return True


def below(M: Matrix, level: Fraction) -> bool:
    """Whether the largest eigenvalue of M is at most the level."""
    return psd(
        [[(level if i == j else 0) - x for j, x in enumerate(row)] for i, row in enumerate(M)]
    )


def block(A: Matrix, S) -> Matrix:
    """The rows and columns of S."""
    return [[A[i][j] for j in S] for i in S]


def eigen(M: Matrix):
    """Approximate eigenvalues, the largest first, and eigenvectors in rows."""
    w, Q = np.linalg.eigh(np.array([[float(x) for x in row] for row in M]))
    return [Fraction(x) for x in w[::-1].tolist()], [[Fraction(x) for x in q] for q in Q.T[::-1]]


def fan(M: Matrix, k: int, level: Fraction, others=()) -> bool:
    """Whether the k largest among the eigenvalues of M and the others sum to the level at most.

    By the dual of Fan's theorem: k nu + tr Z + the sum of (other - nu)_+, with nu I + Z - M
    positive semidefinite.
    """
    w, Q = eigen(M)
    nu = sorted([*w, *others], reverse=True)[k - 1]
    lift = [max(x - nu, Fraction(0)) for x in w]
    Z = [
        [sum(z * q[i] * q[j] for z, q in zip(lift, Q) if z) for j in range(len(M))]
        for i in range(len(M))
    ]
    used = k * nu + sum(Z[i][i] for i in range(len(M))) + sum(max(x - nu, 0) for x in others)
    nu += (level - used) / k
    return level >= used and below(
        [[M[i][j] - Z[i][j] for j in range(len(M))] for i in range(len(M))], nu
    )


def largest(numbers, count: int) -> Fraction:
    """The sum of the largest positive ones of the numbers, so many of them at most."""
    return sum((x for x in nlargest(count, numbers) if x > 0), Fraction(0))


def inverse(H: Matrix):
    """The determinant of H and, unless that is zero, its inverse."""
    n = len(H)
    S = [list(row) + [Fraction(i == j) for j in range(n)] for i, row in enumerate(H)]
    det = Fraction(1)
    for k in range(n):
        pivot = next((i for i in range(k, n) if S[i][k]), None)
        if pivot is None:
            return Fraction(0), []
        if pivot != k:
            S[k], S[pivot], det = S[pivot], S[k], -det
        det *= S[k][k]
        S[k] = [x / S[k][k] for x in S[k]]
        for i in range(n):
            if i != k and S[i][k]:
                S[i] = [x - S[i][k] * y for x, y in zip(S[i], S[k])]
    return det, [row[n:] for row in S]


def grows(H: Matrix) -> bool:
    """Whether H is not copositive although all its proper principal submatrices are.

    Hadeler (1983): if and only if det H < 0 and the adjugate has no negative entry.
    """
    det, inv = inverse(H)
    return det < 0 and all(x <= 0 for row in inv for x in row)


def worth(A: Matrix, S, level: Fraction, nonnegative: bool) -> bool:
    """Whether x'Ax is at most the level for every unit x (x >= 0) that vanishes outside S."""
    B = block(A, S)
    H = [[(level if i == j else 0) - B[i][j] for j in range(len(S))] for i in range(len(S))]
    if psd(H) or not nonnegative:
        return psd(H)
    return not any(
        grows(block(H, T))
        for size in range(1, len(S) + 1)
        for T in combinations(range(len(S)), size)
    )


class Values:
    """Numbers that no component on a support exceeds, each as small as it could be proved."""

    def __init__(self, A: Matrix, nonnegative: bool) -> None:
        self.A, self.nonnegative = A, nonnegative
        self.of = lru_cache(maxsize=None)(self.find)

    def find(self, S: tuple[int, ...]) -> Fraction:
        """Look at smaller supports first where signs count, then at the leading eigenvalue."""
        if len(S) == 1:
            return self.A[S[0]][S[0]]
        B, least = block(self.A, S), Fraction(-1)
        if self.nonnegative:
            least = max(self.of(S[:i] + S[i + 1 :]) for i in range(len(S)))
            if self.holds(B, least):
                return least
        top = eigen(B)[0][0]
        step = abs(top) * EPS / 4
        while not self.holds(B, max(top, least)):
            top, step = top + step, 2 * step
        return max(top, least)

    def holds(self, B: Matrix, t: Fraction) -> bool:
        """Whether t bounds the form B, given that it does on all smaller supports."""
        if below(B, t):
            return True
        H = [[(t if i == j else 0) - B[i][j] for j in range(len(B))] for i in range(len(B))]
        return self.nonnegative and not grows(H)


def best_packing(tables: list[list[tuple[Fraction, frozenset]]], used=frozenset(), floor=None):
    """The largest sum of one value from each table whose supports are disjoint."""
    if not tables:
        return Fraction(0)
    best, rest = floor, sum(table[0][0] for table in tables[1:] if table)
    for value, S in tables[0]:
        if best is not None and value + rest <= best:
            break
        if not S & used:
            inner = best_packing(tables[1:], used | S, None if best is None else best - value)
            if inner is not None and (best is None or value + inner > best):
                best = value + inner
    return best


# ------------------------------------------------------------------ the claim


def check_components(document: dict, ask: Ask) -> None:
    """Loadings of the kind asked for, that explain the value less its rounding."""
    certificate = document["certificate"]
    supports = [places(S, ask.p) for S in document["supports"]]
    weights = [vector(w, len(S)) for w, S in zip(document["weights"], supports)]
    need(len(supports) == len(document["weights"]) == ask.k, "the number of components")
    counts = sorted((sum(x != 0 for x in w) for w in weights), reverse=True)
    need(all(c <= s for c, s in zip(counts, sorted(ask.sizes, reverse=True))), "too many nonzeros")
    need(sum(counts) <= ask.m, "too many nonzeros in all")
    need(not ask.nonnegative or all(x >= 0 for w in weights for x in w), "a negative loading")
    used = [i for S in supports for i in S]
    need(ask.free or len(used) == len(set(used)), "components share a feature")
    need(all(abs(sum(x * x for x in w) - 1) <= 64 * ask.p * EPS for w in weights), "not unit")
    A, k = ask.A, ask.k
    G = [
        [
            sum(
                x * y * A[i][j]
                for x, i in zip(weights[a], supports[a])
                for y, j in zip(weights[b], supports[b])
            )
            for b in range(k)
        ]
        for a in range(k)
    ]
    explained, growth = [], Fraction(k)
    for j in range(k):
        explained.append(G[j][j] * ask.unit / sum(x * x for x in weights[j]))
        for i in range(j + 1, k if ask.free and G[j][j] > 0 else 0):
            factor = G[i][j] / G[j][j]
            growth += (1 + abs(factor)) ** 2 * k
            for b in range(j + 1, k):
                G[i][b] -= factor * G[j][b]
    value, rounding = exact(certificate["value"]), exact(certificate["rounding"])
    need(rounding >= 0, "a negative rounding")
    need(value - rounding <= sum(explained), "the components explain less than the value")
    need(value + rounding >= sum(explained), "the components explain more than the value")
    for said, true in zip(vector(document["variances"], k), explained):
        need(abs(said - true) <= rounding, "the variance of a component")
    sizes = [A[i][i] * ask.unit for i in range(ask.p)]
    limit = 4 * (len(used) + 8) * EPS * sum(sizes[i] for i in used)
    terms = 24 * ask.n + 400 if certificate["screening"] else 3 * ask.n + 40
    limit += 0 if ask.given else terms * EPS * largest(sizes, ask.m)
    need(rounding <= 8 * limit * (growth**2 if ask.free else 1), "the rounding is too large")


def check_bounds(certificate: dict, ask: Ask) -> None:
    """Every bound of the list; the first is the bound of the claim, and the status follows."""
    values = [exact(b["value"]) for b in certificate["bounds"] if b["value"] != math.inf]
    bound, value = exact(certificate["bound"]), exact(certificate["value"])
    need(bool(values) and bound == values[0] and values == sorted(values), "order of the bounds")
    need(bound >= value - exact(certificate["rounding"]), "the bound is below the value")
    optimal = bound - value <= exact(certificate["tol"]) * value
    need(certificate["status"] != "optimal" or optimal, "the gap is not within tol")
    check_screening(certificate, ask)
    for claimed in certificate["bounds"]:
        if claimed["value"] != math.inf:
            level = exact(claimed["value"]) / ask.unit
            level /= 1 + (Fraction(1, 2**180) if ask.scaled else 0)
            prove(claimed["name"], claimed["data"], ask, level)


# ------------------------------------------------------------------ bounds


def prove(name: str, data: dict, ask: Ask, level: Fraction) -> None:
    """Prove that no admissible components explain more than the level."""
    need(name in FAMILIES, f"no such bound: {name}")
    need(not ask.free or ask.k == 1 or name in SHARED, f"{name} needs disjoint supports")
    need(ask.total is None or ask.k == 1 or name in TOTALS, f"{name} does not hold for totals")
    if "screened" in data:
        return prove_screened(name, data, ask, level)
    if "kept" in data:
        kept = places(data["kept"], ask.p)
        need(not any(ask.A[i][i] for i in set(range(ask.p)) - set(kept)), "a feature left out")
        ask = replace(ask.among(kept), whole=len(kept) == ask.p)
    need(level >= 0, f"{name}: a negative bound")
    need(FAMILIES[name](data, ask, level), f"{name} is not proved")


def counted(ask: Ask) -> Matrix:
    """The covariance; of nonnegative components negative covariances do not count."""
    if not ask.nonnegative:
        return ask.A
    return [
        [x if i == j else max(x, Fraction(0)) for j, x in enumerate(row)]
        for i, row in enumerate(ask.A)
    ]


def zeros(ask: Ask) -> list[Fraction]:
    """What components on constant features explain."""
    return [] if ask.whole else [Fraction(0)] * ask.k


def defect(A: Matrix) -> Fraction:
    """A number that makes A positive semidefinite when it is added to the diagonal."""
    if psd(A):
        return Fraction(0)
    size = sum(abs(A[i][i]) for i in range(len(A)))
    step = abs(min(eigen(A)[0])) + EPS * size
    while not below([[-x for x in row] for row in A], step):
        step *= 2
    return step


def prove_trace(data: dict, ask: Ask, level: Fraction) -> bool:
    """The largest variances, as many as there are nonzeros."""
    short = defect(ask.A) * (ask.m - ask.k) if ask.given else 0
    return largest([ask.A[i][i] for i in range(ask.p)], ask.m) + short <= level


def partners(row: list[Fraction], i: int, count: int) -> Fraction:
    """The largest magnitudes of row i off the diagonal."""
    return largest([abs(x) for j, x in enumerate(row) if j != i], count)


def prove_gershgorin(data: dict, ask: Ask, level: Fraction) -> bool:
    """Every component has a row of its own."""
    rows = [row[i] + partners(row, i, ask.s - 1) for i, row in enumerate(counted(ask))]
    return largest(rows, ask.k) <= level


def prove_frobenius(data: dict, ask: Ask, level: Fraction) -> bool:
    """The root is avoided: squares are compared."""
    c = exact(data["c"])
    rho = [
        (row[i] - c) ** 2 + partners([x * x for x in row], i, ask.s - 1)
        for i, row in enumerate(counted(ask))
    ]
    left = level - ask.k * c
    return c >= 0 and left >= 0 and left**2 >= ask.k * largest(rho, ask.m)


def clipped(ask: Ask, rho: Fraction) -> Matrix:
    """The covariance, its entries up to rho traded for charges."""
    A, span = counted(ask), range(ask.p)
    need(rho >= 0, "a negative threshold")
    U = [[max(-rho, min(rho, A[i][j])) if i != j else Fraction(0) for j in span] for i in span]
    M = [[A[i][j] - U[i][j] for j in span] for i in span]
    for i in span:
        M[i][i] += partners(U[i], i, ask.s - 1)
    return M


def prove_clip(data: dict, ask: Ask, level: Fraction) -> bool:
    """The k largest eigenvalues of what clipping leaves."""
    return fan(clipped(ask, exact(data["rho"])), ask.k, level, zeros(ask))


def prove_eigenvalues(data: dict, ask: Ask, level: Fraction) -> bool:
    """Which of the two matrices was factored makes no difference to exact numbers."""
    need(data.get("matrix", "features") in ("features", "samples"), "no such matrix")
    return fan(ask.A, ask.k, level, zeros(ask))


def tables_of(ask: Ask, sizes) -> list[list[tuple[Fraction, frozenset]]]:
    """For each size the supports with their values, the best first."""
    values, tables = Values(ask.A, ask.nonnegative), {}
    for s in set(sizes):
        short = ask.nonnegative or sum(sizes) > ask.p
        supports = [
            S
            for size in range(1 if short else min(s, ask.p), min(s, ask.p) + 1)
            for S in combinations(range(ask.p), size)
        ]
        table = [(values.of(S), frozenset(S)) for S in supports]
        table += [(Fraction(0), frozenset())] if short else []
        tables[s] = sorted(table, key=lambda pair: -pair[0])
    return [tables[s] for s in sizes]


def shares(total: int, k: int, most: int):
    """The ways to share a total among k components, the largest first."""
    if k == 0:
        yield ()
    for s in range(min(most, total - k + 1), 0, -1) if k else ():
        yield from ((s, *rest) for rest in shares(total - s, k - 1, s))


def prove_enumeration(data: dict, ask: Ask, level: Fraction) -> bool:
    """All supports; of several components the best disjoint ones."""
    if ask.k == 1:
        return all(
            worth(ask.A, S, level, ask.nonnegative)
            for S in combinations(range(ask.p), min(ask.s, ask.p))
        )
    wanted = [tuple(sorted(ask.sizes, reverse=True))]
    if ask.total is not None:
        wanted = list(shares(ask.total, ask.k, ask.s))
    return all(best_packing(tables_of(ask, sizes)) <= level for sizes in wanted)


def prove_parts(data: dict, ask: Ask, level: Fraction) -> bool:
    """One bound for each component; what the level leaves is shared among them."""
    parts = data["parts"]
    need(sorted(part["s"] for part in parts) == sorted(ask.sizes), "sizes of the parts")
    slack = (level - sum(exact(part["value"]) for part in parts)) / ask.k
    need(slack >= 0, "the parts sum to more")
    seen = []
    for part in parts:
        if part not in seen:
            seen.append(part)
            need(part["name"] != "parts", "a part of parts")
            level = exact(part["value"]) + slack
            prove(part["name"], part["data"], ask.alone(part["s"]), level)
    return True


def times(A: Matrix, B: Matrix) -> Matrix:
    """The product of two matrices."""
    columns = list(zip(*B))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in A]


def prove_adjusted(data: dict, ask: Ask, level: Fraction) -> bool:
    """One component in another matrix H, and the eigenvalues of H^-1 A."""
    need([part["s"] for part in data["parts"]] == sorted(set(ask.sizes)), "sizes of the parts")
    known = {part["s"]: exact(part["value"]) for part in data["parts"]}
    taus = sorted((known[s] for s in ask.sizes), reverse=True)[: ask.p]
    lacking = defect(ask.A) if ask.given else Fraction(0)
    if "ridge" in data["matrix"]:
        ridge = exact(data["matrix"]["ridge"])
        need(ridge > 0 and data["matrix"]["of"] in ("features", "samples"), "a ridge")
        inside, H = ask, None
    else:
        H = [[Fraction(0)] * ask.p for _ in range(ask.p)]
        for (i, j), x in triangle(data["matrix"]["h"], ask.p).items():
            H[i][j] = H[j][i] = x
        for i, x in enumerate(vector(data["matrix"]["diagonal"], ask.p)):
            H[i][i] = x
        need(psd(H), "H is not positive semidefinite")
        inside = Ask(H, ask.sizes, nonnegative=ask.nonnegative, given=True)
    for part in data["parts"]:
        need(part["name"] not in ("parts", "adjusted") and known[part["s"]] > 0, "a part")
        prove(part["name"], part["data"], inside.alone(part["s"]), known[part["s"]])
    if H is None:
        total = Fraction(0)
        w, Q = eigen(ask.A)
        for j, tau in enumerate(taus):
            nu = w[j] + 4 * (ask.p + 2) * EPS * (sum(abs(x) for x in w) + Fraction(1, 2**900))
            M = [
                [
                    ask.A[a][b]
                    - sum((w[i] - w[j]) * Q[i][a] * Q[i][b] for i in range(j) if w[i] > w[j])
                    for b in range(ask.p)
                ]
                for a in range(ask.p)
            ]
            need(below(M, nu), "an eigenvalue is not proved")
            nu = max(nu, Fraction(0)) + lacking
            total += (tau + lacking + ridge) * nu / (nu + ridge)
        return total <= level
    levels = {found["count"]: found for found in data["levels"]}
    total = Fraction(0)
    for j, tau in enumerate(taus, 1):
        step = tau - (taus[j] if j < len(taus) else 0)
        if step:
            need(j in levels, "a sum of eigenvalues is missing")
            total += step * eigenvalue_sum(levels[j], H, ask.A, lacking)
    return total <= level


def eigenvalue_sum(found: dict, H: Matrix, A: Matrix, lacking: Fraction) -> Fraction:
    """The largest eigenvalues of H^-1 A sum to no more."""
    nu, p = exact(found["nu"]), len(A)
    P = [[exact(x) for x in row] for row in found["vectors"]]
    need(nu >= 0 and len(P) == p, "a sum of eigenvalues")
    W = times(H, P)
    square = times(W, [list(column) for column in zip(*W)])
    M = [[nu * H[i][j] + square[i][j] - A[i][j] for j in range(p)] for i in range(p)]
    for i in range(p):
        M[i][i] -= lacking
    need(psd(M), "a sum of eigenvalues is not proved")
    return found["count"] * nu + sum(x * y for a, b in zip(P, W) for x, y in zip(a, b))


# ------------------------------------------------------------------ pair splits


def triangle(numbers, n: int) -> dict[tuple[int, int], Fraction]:
    """The numbers above the diagonal, by their places."""
    pairs = list(combinations(range(n), 2))
    return dict(zip(pairs, vector(numbers, len(pairs))))


def pair_split(record: dict, A: Matrix, nonnegative: bool) -> tuple[Matrix, Matrix]:
    """The matrices U and V of a certificate; any factor and its inverse keep V_ij V_ji = U_ij^2."""
    n = len(A)
    U, V = [[[Fraction(0)] * n for _ in range(n)] for _ in range(2)]

    def put(i: int, j: int, u: Fraction, factor: Fraction) -> None:
        U[i][j] = U[j][i] = u
        charge = max(u, Fraction(0)) if nonnegative else abs(u)
        V[i][j], V[j][i] = charge * factor, charge / factor

    if "clip" in record:
        rho = exact(record["clip"])
        need(rho >= 0, "a negative threshold")
        for i, j in combinations(range(n), 2):
            low = A[i][j] if nonnegative else max(A[i][j], -rho)
            put(i, j, min(low, rho), Fraction(1))
        return U, V
    features = places(record["features"], n)
    if "rank_one" in record:
        v, floor = vector(record["rank_one"], len(features)), exact(record["floor"])
        need(floor > 0, "the floor")
        e = Fraction(math.exp(25))
        for a, b in combinations(range(len(features)), 2):
            factor = max(abs(v[b]), floor) / max(abs(v[a]), floor)
            put(features[a], features[b], v[a] * v[b], min(max(factor, 1 / e), e))
        return U, V
    u, r = triangle(record["u"], len(features)), triangle(record["r"], len(features))
    need(all(abs(x) <= 100 for x in r.values()), "an exponent out of range")
    for a, b in u:
        put(features[a], features[b], u[a, b], Fraction(math.exp(r[a, b])))
    return U, V


def outside(ask: Ask, core: list[int], theta, price, s: int) -> list[Fraction]:
    """The numbers m_j of the features outside a core."""
    A, rest, found = counted(ask), sorted(set(range(ask.p)) - set(core)), []
    for j in rest:
        charges = [abs(A[j][i]) for i in rest if i != j]
        if s > 1:
            need(all(t > 0 for t in theta), "a pad of zero beside features outside the core")
            charges += [A[j][a] ** 2 / t - b for a, t, b in zip(core, theta, price)]
        found.append(A[j][j] + largest(charges, s - 1))
    return found


def prove_kyfan(data: dict, ask: Ask, level: Fraction) -> bool:
    """The Ky Fan split with prices, a core and pads."""
    M, others, price = ky_fan_matrix(data, ask)
    return fan(M, ask.k, level - largest(price, ask.m), others + zeros(ask))


def ky_fan_matrix(data: dict, ask: Ask) -> tuple[Matrix, list[Fraction], list[Fraction]]:
    """M on the core, the m_j outside, and the prices of the core."""
    core = places(data["features"], ask.p)
    price, pad = vector(data["price"], len(core), 0), exact(data["pad"])
    need(pad >= 0, "a negative pad")
    A = block(ask.A, core)
    U, V = pair_split({**data, "features": range(len(core))}, A, ask.nonnegative)
    theta, M = [], [[A[i][j] - U[i][j] for j in range(len(core))] for i in range(len(core))]
    for a in range(len(core)):
        charges = [V[a][b] - price[b] for b in range(len(core)) if b != a] + [pad] * ask.s
        chosen = sorted(charges, reverse=True)[: ask.s - 1]
        M[a][a] += sum(chosen) - price[a]
        theta.append(min(chosen, default=pad))
    return M, outside(ask, core, theta, price, ask.s), price


# ------------------------------------------------------------------ trees


class Tree:
    """The replay of a log on a core: its nodes in their order, each proved at the level."""

    def __init__(self, log: list[dict], A: Matrix, s: int, nonnegative: bool, level: Fraction):
        problem = log[0]
        need(problem["step"] == "problem" and problem["s"] >= s, "another problem")
        need(nonnegative or not problem["nonnegative"], "a log for nonnegative components")
        n, unit = len(A), power_of_two(problem["unit"])
        self.log, self.s, self.nonnegative = log, problem["s"], problem["nonnegative"]
        self.prices = [x / unit for x in vector(problem.get("prices", [0.0] * n), n, 0)]
        self.pads = [x / unit for x in vector(problem.get("pads", [0.0] * n), n, 0)]
        self.padded = "pads" in problem
        self.A = [[x / unit for x in row] for row in A]
        self.t = level / unit
        self.twins(problem["twins"])
        self.splits: dict[int, tuple[Matrix, Matrix]] = {}

    def twins(self, record: dict) -> None:
        """Make rows exact multiples of others, and lower the level by what this changes."""
        n = len(self.A)
        self.leader, self.factor = list(range(n)), [Fraction(1)] * n
        if not record:
            return
        need(not self.padded, "twins on a core with features outside")
        features = places(record["features"], n)
        need(not set(features) & set(record["leaders"]), "the leader of a twin is a twin")
        factors = vector(record["factors"], len(features), -1)
        for i, leader, factor in zip(features, record["leaders"], factors, strict=True):
            need(0 <= leader < n and abs(factor) <= 1, "a twin")
            self.leader[i], self.factor[i] = leader, factor
        c, lead, old = self.factor, self.leader, self.A
        self.A = [[c[i] * c[j] * old[lead[i]][lead[j]] for j in range(n)] for i in range(n)]
        change = max(abs(self.A[i][j] - old[i][j]) for i in range(n) for j in range(n))
        self.t -= self.s * change

    def replaces(self, j: int, i: int) -> bool:
        """Whether j can take the place of its twin i in every support."""
        same = self.leader[i] == self.leader[j] and abs(self.factor[i]) <= abs(self.factor[j])
        signs = not self.nonnegative or self.factor[i] * self.factor[j] > 0
        return same and signs and self.prices[j] <= self.prices[i]

    def split(self, place: int) -> tuple[Matrix, Matrix]:
        """The certificate at a place of the log."""
        if place not in self.splits:
            need(self.log[place]["step"] == "split", "no certificate there")
            self.splits[place] = pair_split(self.log[place], self.A, self.nonnegative)
        return self.splits[place]

    def holds(self, split, alive, forced, j: int = -1, side: str = "") -> bool:
        """Whether M <= tI on the features alive; with j in, or out of, every support."""
        return below(self.matrix(split, alive, forced, j, side), self.t)

    def fixed(self, split, alive, forced, features, side: str) -> bool:
        """Whether M <= tI with each of the features in, or out of, every support.

        Where this is many large matrices, features are taken together: each row is charged the
        most that it is with any of them. If that is too much, each half is looked at.
        """
        if len(alive) <= 40 or len(features) == 1 or side == "out":
            return all(self.holds(split, alive, forced, j, side) for j in features)
        M, features = self.matrix(split, alive, forced), sorted(features)
        each = [self.matrix(split, alive, forced, j, side, diagonal=True) for j in features]
        for place, i in enumerate(sorted(alive)):
            M[place][place] = max(D[i] for D in each)
        half = len(features) // 2
        return below(M, self.t) or (
            self.fixed(split, alive, forced, features[:half], side)
            and self.fixed(split, alive, forced, features[half:], side)
        )

    def matrix(self, split, alive, forced, j: int = -1, side: str = "", diagonal: bool = False):
        """The matrix M of a node, or its diagonal; with j in, or out of, every support."""
        U, V = split
        rows = [i for i in sorted(alive) if not (side == "out" and i == j)]
        D = {}
        for i in rows:
            count = self.s - len(forced) - (i not in forced)
            d = -self.prices[i] - sum(self.prices[f] for f in forced if f != i)
            d += 0 if i in forced else sum(V[i][f] for f in forced)
            free = {b: V[i][b] for b in alive if b not in forced and b != i}
            if any(self.prices):
                free = {b: v - self.prices[b] for b, v in free.items()}
            if side == "out":
                free.pop(j, None)
            if side == "in" and i != j and count > 0:
                d, count = d + free.pop(j, Fraction(0)), count - 1
            chosen = largest([*free.values(), *[self.pads[i]] * count], count)
            D[i] = self.A[i][i] + d + chosen
        if diagonal:
            return D
        M = [
            [self.A[a][b] - self.moved(U[a][b], a in forced and b in forced) for b in rows]
            for a in rows
        ]
        for place, i in enumerate(rows):
            M[place][place] = D[i]
        return M

    def moved(self, u: Fraction, sure: bool) -> Fraction:
        """Nothing is gained where a charge is sure; a negative one of x >= 0 costs nothing."""
        return u if not sure else min(u, Fraction(0)) if self.nonnegative else Fraction(0)

    def supports(self, alive, forced):
        """The supports of a node; of signed components without prices the largest are enough."""
        free = sorted(alive - forced)
        most = min(self.s - len(forced), len(free))
        few = 0 if self.nonnegative or any(self.prices) else most
        for size in range(few, most + 1):
            yield from (tuple(sorted(forced | set(T))) for T in combinations(free, size))

    def check(self) -> None:
        """Go through the nodes, then see that none of them was left open."""
        self.sets: dict[int, tuple[frozenset, frozenset]] = {}
        self.children: dict[int, list[int]] = {}
        nodes = [i for i, step in enumerate(self.log) if step["step"] == "node"]
        need(bool(nodes), "a log without nodes")
        after = {}
        for place in nodes:
            node = self.log[place]
            if place == nodes[0]:
                need(node["parent"] == -1 and node["side"] == "root", "the root")
                alive, forced = frozenset(range(len(self.A))), frozenset()
            else:
                need(node["parent"] in after, "a parent that does not come first")
                self.children.setdefault(node["parent"], []).append(place)
                alive, forced = self.child(node, *after[node["parent"]])
            self.sets[place] = (alive, forced)
            after[place] = self.passes(node, alive, forced)
        for place in reversed(nodes):
            self.settle(place, self.log[place], *after[place], nodes)

    def child(self, node: dict, alive, forced):
        """What a node has of its parent's features."""
        moved = set(places(node["moved"], len(self.A)))
        need(moved <= alive, "a feature moved that is not alive")
        if node["side"] == "in":
            return alive, forced | moved
        need(node["side"] == "shrink" or not moved & forced, "a forced feature moved out")
        return alive - moved, forced - moved

    def passes(self, node: dict, alive, forced):
        """Fix features; each is tested on the sets that the round begins with."""
        for one in node["passes"]:
            if self.empty(alive, forced):
                break
            out, into = [set(places(one[side], len(self.A), 0)) for side in ("out", "in")]
            need(out | into <= alive - forced, "a feature fixed that is not free")
            split = self.split(one["split"])
            need(self.fixed(split, alive, forced, out, "in"), "features fixed out")
            need(self.fixed(split, alive, forced, into, "out"), "features fixed in")
            alive, forced = alive - out, forced | into
        return alive, forced

    def empty(self, alive, forced) -> bool:
        """Whether a node has no supports."""
        return not alive or len(forced) > self.s or not forced <= alive

    def settle(self, place: int, node: dict, alive, forced, nodes: list[int]) -> None:
        """Prove a node, given that all later ones are proved or will be."""
        children, end = self.children.get(place, []), node["end"]
        if self.empty(alive, forced):
            return
        if end == "closed":
            need(self.holds(self.split(node["split"]), alive, forced), "a node is not closed")
        elif end == "leaf":
            need(not self.padded or len(forced) == self.s, "a leaf with features outside")
            for S in self.supports(alive, forced):
                level = self.t + sum(self.prices[i] for i in S)
                need(not S or worth(self.A, S, level, self.nonnegative), "a support of a leaf")
        elif end == "branch":
            sides = {self.log[c]["side"]: self.log[c]["moved"] for c in children}
            need(len(children) == 2 and set(sides) == {"in", "out"}, "children of a branch")
            need(len(sides["in"]) == 1 and sides["in"][0] in sides["out"], "another feature")
            j = sides["in"][0]
            need(j not in forced, "a branch on a forced feature")
            need(all(i == j or self.replaces(j, i) for i in sides["out"]), "not a twin")
        elif end == "shrink":
            need(self.nonnegative and len(alive) <= self.s, "a support that cannot shrink")
            gone = sorted(self.log[c]["moved"] for c in children if self.log[c]["side"] == end)
            need(gone == [[i] for i in sorted(alive)], "children of a shrunk support")
            level = self.t + sum(self.prices[i] for i in alive)
            need(worth(self.A, sorted(alive), level, True), "a shrunk support")
        elif end == "same":
            need(node["node"] in nodes and node["node"] < place, "the same as a later node")
            need(self.sets[node["node"]] == (alive, forced), "another node")
        else:
            raise Refused(f"a node ends as {end} with supports left")


def prove_tree(data: dict, ask: Ask, level: Fraction) -> bool:
    """A log on all features, or on a core with a touch certificate."""
    need(ask.k == 1, "a tree is for one component")
    core = list(range(ask.p))
    if "touch" in data:
        core = places(data["touch"]["core"], ask.p)
        touch(data["touch"], ask, core, level)
    need("prices" not in data["log"][0] and "pads" not in data["log"][0], "a log with prices")
    Tree(data["log"], block(ask.A, core), min(ask.s, len(core)), ask.nonnegative, level).check()
    return True


def touch(data: dict, ask: Ask, core: list[int], t: Fraction) -> None:
    """Supports that leave the core; every covariance is known here, so that all count as near."""
    s, n, H = ask.s, len(core), block(ask.A, core)
    rest = sorted(set(range(ask.p)) - set(core))
    U, V = pair_split(data["split"], H, ask.nonnegative)
    A, covered = counted(ask), []
    ranks = {j: nlargest(s - 1, [abs(A[j][i]) for i in rest if i != j]) for j in rest}
    squares = {j: [A[j][a] ** 2 for a in core] for j in rest}
    need(all(A[j][j] + sum(ranks[j]) <= t for j in rest), "supports outside the core")
    for group in data["groups"]:
        first, last, pads = group["first"], group["last"], []
        covered += range(first, last + 1)
        for pad in group["pads"]:
            pi = [exact(pad["scale"]) * x for x in vector(pad["shape"], n)]
            need(first >= 1 and all(x > 0 for x in pi), "a pad that is not positive")
            M = [[H[a][b] - U[a][b] for b in range(n)] for a in range(n)]
            for a in range(n):
                M[a][a] += largest(V[a], s - 1 - first) + first * pi[a]
            need(below(M, t), "a pad is too large")
            pads.append(pi)
        for tau in range(first, min(last, s - 1) + 1):
            for j in rest:
                left = t - A[j][j] - sum(ranks[j][: tau - 1])
                need(
                    any(
                        largest([x / y for x, y in zip(squares[j], pi)], s - tau) * tau
                        <= left * first
                        for pi in pads
                    ),
                    f"feature {j} outside the core",
                )
    need(set(range(1, s)) <= set(covered), "a number of features outside is left out")


# ------------------------------------------------------------------ prices


def prove_configuration(data: dict, ask: Ask, level: Fraction) -> bool:
    """All prices, and for each component what a tree proves of supports at these prices."""
    core = places(data.get("features", range(ask.p)), ask.p)
    price = vector(data["price"], len(core), 0)
    bounds = {id(part): exact(part["log"][0]["bound"]) for part in data["parts"]}
    chosen = []
    for s in ask.sizes:
        fit = [part for part in data["parts"] if part["s"] >= s]
        need(bool(fit), "a component without a part")
        chosen.append(min(fit, key=lambda part: bounds[id(part)]))
    worths = [max(bounds[id(part)], Fraction(0)) for part in chosen]
    target = exact(data["packing"]["target"]) if "packing" in data else None
    slack = (level - sum(price) - sum(worths)) / ask.k
    need(slack >= 0 or target is not None, "prices and parts sum to more")
    slack = max(slack, abs(level) * EPS)
    for part in {id(part): part for part in chosen}.values():
        prove_priced(part, ask, core, price, bounds[id(part)] + slack)
    if target is None or sum(price) + sum(worths) + slack * ask.k <= level:
        return True
    need(len(set(ask.sizes)) == 1 and not ask.nonnegative and len(core) == ask.p, "a packing")
    need(target <= level and ask.m <= ask.p, "the target is above the bound")
    least = target - sum(price) - sum(worths[1:]) - slack * (ask.k - 1)
    values, table = Values(ask.A, False), []
    for S in combinations(range(ask.p), ask.s):
        if not worth(ask.A, S, least + sum(price[i] for i in S), False):
            table.append((values.of(S), frozenset(S)))
    table.sort(key=lambda pair: -pair[0])
    best = best_packing([table] * ask.k) if len(table) >= ask.k else None
    return best is None or best <= level


def prove_priced(part: dict, ask: Ask, core, price, level: Fraction) -> None:
    """A tree with these prices on the core, and the rows outside it."""
    problem = part["log"][0]
    need(vector(problem.get("prices", [0.0] * len(core)), len(core)) == price, "other prices")
    tree = Tree(part["log"], block(ask.A, core), min(part["s"], len(core)), ask.nonnegative, level)
    if len(core) < ask.p:
        need(tree.padded, "features outside the core, and no pads")
        pads = vector(problem["pads"], len(core), 0)
        rows = outside(ask, core, pads, price, part["s"])
        need(all(x <= level for x in rows), "a feature outside is worth more")
    tree.check()


# ------------------------------------------------------------------ dropped features


def check_screening(certificate: dict, ask: Ask) -> None:
    """What the certificate says of dropped features follows from its bounds."""
    told = certificate["screening"]
    named = [bound["data"].get("screened") for bound in certificate["bounds"]]
    need(all((record is None) == (not told) for record in named), "screened bounds beside others")
    for record in named if told else ():
        rest = dropped(record, ask)
        need(told["kept"] == len(record["kept"]) and told["dropped"] == len(rest), "screening")
        need(told["rule"] == record["rule"], "the rule of the dropped features")
        near = abs(exact(told["largest_dropped"]) - max(rest, default=Fraction(0)) * ask.unit)
        most = max([*ask.moments, 1 if ask.scaled else 0])
        need(near <= (200 * ask.n + 4000) * EPS * most, "the largest dropped variance")
        for name in ("inside", "touching"):
            need(exact(told[name]) == exact(record[name]) * ask.unit, f"screening: {name}")
        touching, sure = exact(told["touching"]), exact(certificate["value"])
        sure -= exact(certificate["rounding"])
        need(told["support_unchanged"] is (touching < sure), "support_unchanged")
        need(told["bound_holds"] is (touching <= exact(told["inside"])), "bound_holds")


def dropped(record: dict, ask: Ask) -> list[Fraction]:
    """The variances of the dropped features, the largest first."""
    rest = set(range(ask.p)) - set(places(record["kept"], ask.p))
    return sorted((ask.A[j][j] for j in rest if ask.A[j][j]), reverse=True)


def prove_screened(name: str, data: dict, ask: Ask, level: Fraction) -> None:
    """The bound on the kept features, and what a choice with dropped ones explains."""
    told, own = data["screened"], {key: x for key, x in data.items() if key != "screened"}
    rest, kept = dropped(told, ask), ask.among(places(told["kept"], ask.p))
    inside, touching = exact(told["inside"]), exact(told["touching"])
    prove(name, own, kept, inside)
    if not ask.free or ask.k == 1:
        need(reach(told, inside, kept, rest) <= touching, "a dropped feature may add more")
        need(max(inside, touching) <= level, f"{name} is not proved")
        return
    alone = {part["s"]: exact(part["value"]) for part in own["parts"]}
    parts = {part["s"]: part for part in told["parts"]}
    need(name == "parts" and set(parts) == set(alone), "parts of dropped features")
    reached = {s: reach(parts[s], alone[s], kept.alone(s), rest) for s in alone}
    highest = {s: max(reached[s], alone[s]) for s in alone}
    total = sum(highest[s] for s in ask.sizes)
    most = max(total - highest[s] + reached[s] for s in alone)
    need(most <= touching and max(total, inside) <= level, "a dropped feature may add more")


def reach(record: dict, inside: Fraction, kept: Ask, rest: list[Fraction]) -> Fraction:
    """A number that no choice with a dropped feature exceeds."""
    if not rest:
        return Fraction(0)
    variances = [kept.A[i][i] for i in range(kept.p)]
    stays = {n: min(inside, largest(variances, n)) for n in range(kept.m)}
    if record["rule"] == "prices":
        split, price = record["split"], exact(record["price"])
        need(0 <= price <= exact(split["pad"]), "a price that the pad does not cover")
        M, others, prices = ky_fan_matrix(split, kept)
        for i in range(len(M)):
            M[i][i] -= kept.s * price
        rivals = [x - price for x in others] + [Fraction(0)] * kept.k
        most = sum(sorted([*eigen(M)[0], *rivals], reverse=True)[: kept.k])
        step = max(abs(most), Fraction(1)) * EPS
        while not fan(M, kept.k, most, rivals):
            most, step = most + step, 2 * step
        prices = [x + price for x in prices] + [price] * len(others)
        stays = {n: min(stay, most + largest(prices, n)) for n, stay in stays.items()}
    gains = [sum(rest[:t]) for t in range(len(rest) + 1)]
    return max(stays[kept.m - t] + gains[t] for t in range(1, min(len(rest), kept.m) + 1))


# ------------------------------------------------------------------ ellipsoids


def prove_ellipsoid(data: dict, ask: Ask, level: Fraction) -> bool:
    """f'(T + ww')^-1 f of every column, by the inverse of T and the formula of Sherman."""
    T = [vector(row, data["order"]) for row in data["T"]]
    W = [vector(row, data["order"]) for row in data["W"]]
    named = dict(zip(places(data["features"], ask.p, 0), W))
    need(len(named) == len(W) and len(T) == data["order"] == ask.n, "the order of an ellipsoid")
    need(bool(ask.columns) and [list(row) for row in zip(*T)] == T and psd(T), "an ellipsoid")
    inv = inverse(T)[1]
    need(bool(inv), "a flat ellipsoid")

    def form(x, y) -> Fraction:
        return sum(a * sum(map(Fraction.__mul__, row, y)) for a, row in zip(x, inv))

    stretch = Fraction(1)
    for j, f in enumerate(ask.columns):
        size = form(f, f)
        if j in named:
            size -= form(named[j], f) ** 2 / (1 + form(named[j], named[j]))
        stretch = max(stretch, size / (ask.n * ask.unit))
    span = range(ask.n)
    outer = [[sum(w[a] * w[b] for w in W) for b in span] for a in span]
    total = Fraction(0)
    for s in ask.sizes:
        M = [[s * T[a][b] + outer[a][b] for b in span] for a in span]
        top, step = eigen(M)[0][0], EPS * sum(M[a][a] for a in span)
        while not below(M, top):
            top, step = top + step, 2 * step
        total += stretch * top
    return total <= level


# ------------------------------------------------------------------ duals


def prove_dspca(data: dict, ask: Ask, level: Fraction) -> bool:
    """Eigenvalues of A + U - penalty I on the core; where supports overlap, one by one."""
    penalty, core = exact(data["penalty"]), places(data["core"], ask.p)
    U, A, span = triangle(data["moved"], len(core)), block(ask.A, core), range(len(core))
    short = defect(ask.A) if ask.given else Fraction(0)
    for u in U.values():
        need(u >= -penalty and (ask.nonnegative or u <= penalty), "U is not within the penalty")
    rest = set(range(ask.p)) - set(core)
    need(all(ask.A[i][i] + short <= penalty for i in rest), "a feature outside the core")
    M = [
        [A[i][j] + (short - penalty if i == j else U[min(i, j), max(i, j)]) for j in span]
        for i in span
    ]
    left = level - penalty * ask.m
    if ask.free and ask.k > 1:
        return left >= 0 and below(M, left / ask.k)
    return fan(M, ask.k, left, [Fraction(0)] * ask.k)


def prove_greedy(data: dict, ask: Ask, level: Fraction) -> bool:
    """The Gram matrix of the dual; its rows are scaled so that no root is needed."""
    need(ask.k == 1, "the greedy dual is for one component")
    rho, core = exact(data["rho"]), places(data["core"], ask.p)
    support = places(data["support"], ask.p)
    x, span = vector(data["weights"], len(support)), range(ask.p)
    shift = exact(data["shift"]) if "shift" in data else Fraction(0)
    if ask.given and "shift" not in data:
        shift = defect(ask.A)
    need(shift >= 0 and rho > 0, "the level")
    A = [[v + (shift if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(ask.A)]
    need(not ask.given or psd(A), "the shifted matrix is not positive semidefinite")
    Ax = [sum(A[i][j] * y for j, y in zip(support, x)) for i in span]
    form = sum(Ax[i] * y for i, y in zip(support, x))
    need(form > 0, "x explains nothing")
    g2 = [v * v / form for v in Ax]
    need(all(i in core or (A[i][i] <= rho and g2[i] <= rho) for i in span), "the core")
    rows = [i for i in core if A[i][i] > rho]
    need(all(g2[i] != rho for i in rows), "a product at the level")
    H = [[Fraction(0)] * len(rows) for _ in rows]
    for a, i in enumerate(rows):
        for b, j in enumerate(rows):
            if g2[i] > rho and g2[j] > rho:
                cross = rho * (Ax[i] / Ax[j] + Ax[j] / Ax[i]) - rho * rho * form / (Ax[i] * Ax[j])
            else:
                cross = Ax[i] * Ax[j] / form
            H[a][b] = cross - A[i][j]
        top = level + shift - rho * ask.s
        if g2[i] > rho:
            H[a][a] += top * (g2[i] - rho) / g2[i]
        else:
            H[a][a] += top * (rho - g2[i]) * (A[i][i] - g2[i]) / (rho * (A[i][i] - rho))
    return level + shift >= rho * ask.s and psd(H)


# ------------------------------------------------------------------ sketches


def prove_lowrank(data: dict, ask: Ask, level: Fraction) -> bool:
    """A sketch A <= shift I + VV', and a level that no direction exceeds on any cone."""
    A, k, p = ask.A, ask.k, ask.p
    V = [[exact(x) for x in row] for row in data["V"]]
    need(len(V) == p and len({len(row) for row in V}) == 1, "the shape of the sketch")
    need(data["s"] >= min(ask.s, p), "a sketch for fewer nonzeros")
    need(ask.nonnegative or not data["nonnegative"], "a sketch for nonnegative components")
    prices = vector(data.get("prices", [0.0] * p), p, 0)
    need(not any(prices) or not ask.free or k == 1, "prices where supports may overlap")
    if "clip" in data:
        A = clipped(ask, exact(data["clip"]))
    shift, top = exact(data["shift"]), exact(data["level"])
    slack = (level - sum(prices) - k * (shift + top)) / (2 * k)
    need(slack >= 0, "sketch and level sum to more")
    left = [[A[i][j] - sum(x * y for x, y in zip(V[i], V[j])) for j in range(p)] for i in range(p)]
    need(below(left, shift + slack), "the sketch")
    norms = [sum(x * x for x in v) - c for v, c in zip(V, prices)]
    if largest(norms, data["s"]) <= top + slack:  # (v.c)^2 is at most |v|^2 in every direction
        return True
    r, codes = len(V[0]), iter(data["tree"])
    signs = [c for c in product((1, -1), repeat=r) if data["nonnegative"] or c[0] > 0]
    cones = [[[Fraction(c[i] * (i == j)) for j in range(r)] for i in range(r)] for c in signs]
    while cones:
        halves = []
        for cone in cones:
            code = next(codes, None)
            need(code is not None and -1 <= code < r * r, "the tree of cones")
            if code == -1:
                need(cone_holds(cone, V, prices, data, top + slack), "a cone")
                continue
            a, b = divmod(code, r)
            need(a != b, "an edge of a cone")
            middle = [(x + y) / 2 for x, y in zip(cone[a], cone[b])]
            halves += [[middle if i == end else g for i, g in enumerate(cone)] for end in (a, b)]
        cones = halves
    return next(codes, None) is None


def cone_holds(cone: Matrix, V: Matrix, prices, data: dict, level: Fraction) -> bool:
    """Whether level G - T is copositive on the generators of a cone."""
    r = range(len(cone))
    along = [[sum(x * y for x, y in zip(v, g)) for g in cone] for v in V]
    if data["nonnegative"]:
        along = [[max(x, Fraction(0)) for x in row] for row in along]
    G = [[sum(x * y for x, y in zip(cone[a], cone[b])) for b in r] for a in r]
    H = [
        [
            level * G[a][b]
            - largest([v[a] * v[b] - c * G[a][b] for v, c in zip(along, prices)], data["s"])
            for b in r
        ]
        for a in r
    ]
    return not any(grows(block(H, T)) for size in r for T in combinations(r, size + 1))


FAMILIES = {
    "trace": prove_trace,
    "gershgorin": prove_gershgorin,
    "frobenius": prove_frobenius,
    "clip": prove_clip,
    "eigenvalues": prove_eigenvalues,
    "enumeration": prove_enumeration,
    "parts": prove_parts,
    "adjusted": prove_adjusted,
    "tree": prove_tree,
    "kyfan": prove_kyfan,
    "configuration": prove_configuration,
    "dspca-dual": prove_dspca,
    "greedy-dual": prove_greedy,
    "lowrank": prove_lowrank,
    "ellipsoid": prove_ellipsoid,
}
SHARED = ("eigenvalues", "parts", "adjusted", "dspca-dual", "lowrank")
TOTALS = ("trace", "gershgorin", "enumeration", "eigenvalues", "frobenius", "clip", "kyfan")
