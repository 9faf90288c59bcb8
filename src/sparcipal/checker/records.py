"""The schema: every record of every proof, each field stated once.

The docstrings and the meanings are the text of docs/proof_format.rst, which is made from this
file. Sizes: p is the number of features that a bound speaks of, n that of the core of a proof, m
that of the features of a certificate, k that of the components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gate import (
    Codes,
    Document,
    Features,
    Indices,
    Integer,
    Many,
    Matrix,
    Maybe,
    Named,
    Number,
    Numbers,
    PowerOfTwo,
    Record,
    Steps,
    Text,
    Triangle,
    Truth,
    Word,
    entry,
)

MOST_RANK = 16  # columns of a sketch: a cone has as many generators, and codes have 7 bits
MOST_FEATURES = 2**40  # of a table
MOST_PAIRED = 5000  # features of a table with gaps whose covariances come from pairs
MOST_SAMPLES = 5000  # order of the matrices of an ellipsoid
MOST_COMPONENTS = 10_000  # columns of P
# What is promised in advance: by which method, and whether for nonnegative components only.
THEOREMS = {
    "Papailiopoulos et al. 2013, Theorem 1": ("spannogram", (False,)),
    "Asteris et al. 2014, Theorem 1": ("spannogram", (True,)),
    "Asteris et al. 2015, Theorem 2": ("bipartite", (False, True)),
    "Asteris et al. 2015, Theorem 3, with probability 1 - 1/p": ("bipartite", (False, True)),
}
LARGEST_RATIO = 100.0  # of R: exp(100) squared is far from overflow


# --- the claim ---


@dataclass(frozen=True)
class Settings:
    """What was asked for: the part of ``settings`` that the claim depends on."""

    n_components: int = entry(Integer(1), "the number of components, k")
    n_nonzero_coefs: tuple[int, ...] = entry(
        Many(Integer(1, "p"), least=1, names="k"),
        "the most nonzeros of each component; with a total t, t - k + 1 for each",
    )
    supports: str = entry(
        Word("disjoint", "free", "orthogonal", "common"),
        "what components share: no feature, any, any while they are orthogonal, or one set",
    )
    objective: str = entry(
        Word("sum", "adjusted"),
        "whether variances are added, or what each component explains beyond those before it; "
        "adjusted for free supports",
    )
    uncorrelated: bool = entry(Truth(), "whether the scores of components are uncorrelated")
    nonnegative: bool = entry(Truth(), "whether all loadings are at least zero")
    center: bool = entry(Truth(), "whether the column means were subtracted")
    scale: bool = entry(Truth(), "whether columns were divided by their deviations")
    sample_weight: bool = entry(Truth(), "whether samples had weights")
    tol: float = entry(Number(0.0, 1.0, whole=True), "the relative gap that counts as optimal")
    max_nodes: int | None = entry(Maybe(Integer()), "a limit of nodes")
    time_limit: float | None = entry(Maybe(Number(whole=True)), "a limit of seconds")
    method: str | None = entry(
        Text(), "the name of the method, which only a promise asks for", optional=True
    )
    n_nonzero_total: int | None = entry(
        Maybe(Integer(1)), "the most nonzeros of all components together", optional=True
    )
    include: tuple[tuple[int, ...], ...] | None = entry(
        Many(Many(Integer(0)), least=1),
        "the features that each component counts among its own, whatever their loadings",
        optional=True,
    )
    exclude: tuple[int, ...] | None = entry(
        Many(Integer(0)), "the features that no component uses", optional=True
    )
    missing: str | None = entry(
        Maybe(Word("rows", "mean", "median", "pairwise")),
        "what was done about missing entries, where there were some: :doc:`missing`",
        optional=True,
    )


@dataclass(frozen=True)
class ClaimedBound:
    """A bound by its name. ``data`` is the record of that name, and :ref:`Among`."""

    name: str = entry(Text(), "which bound it is")
    value: float = entry(Number(infinite=True), "the bound, in the user's units")
    data: dict = entry(Document(), "its proof")
    margin: float = entry(Number(0.0), "how much of it is for the rounding of the covariance")


@dataclass(frozen=True)
class Claim:
    """What a result asserts about the data; everything else in it is commentary. Covariances are
    about the means (about zero if not centred), divided by the number of rows or the sum of their
    weights, and ``scale`` is the root of a variance so divided."""

    n_features: int = entry(
        Integer(1, MOST_FEATURES, names="p"), "the number of features of the data"
    )
    n_samples: int | None = entry(
        Maybe(Integer(1)),
        "rows of the data, of a screened table those of positive weight; null for a covariance",
    )
    feature_names: tuple[str, ...] | None = entry(Maybe(Many(Text())), "one name per feature")
    settings: Settings = entry(Record(Settings), "what was asked for")
    supports: tuple[np.ndarray, ...] = entry(
        Many(Features("p", least=1), least=1, names="k"), "the features of each component"
    )
    weights: tuple[np.ndarray, ...] = entry(
        Many(Numbers(), least=1), "the loadings on those features"
    )
    variances: np.ndarray = entry(Numbers("k"), "the variance that each component explains")
    total_variance: float = entry(Number(), "the trace of the covariance")
    mean: np.ndarray | None = entry(Maybe(Numbers("p")), "the column means; zeros if not centred")
    scale: np.ndarray | None = entry(
        Maybe(Numbers("p")), "the column deviations; ones if not scaled, and for constant columns"
    )
    unit: float = entry(PowerOfTwo(), "proofs speak of the covariance divided by it")
    value: float = entry(Number(), "the sum of the variances explained")
    bound: float = entry(Number(), "no admissible components explain more")
    rounding: float = entry(Number(0.0), "by how much rounding may have raised the value")
    tol: float = entry(Number(0.0, 1.0, whole=True), "the relative gap that counts as optimal")
    status: str = entry(
        Word("optimal", "gap", "node_limit", "time_limit", "interrupted"), "how the run ended"
    )
    bounds: tuple[ClaimedBound, ...] = entry(
        Many(Record(ClaimedBound), least=1), "every bound that is claimed, the smallest first"
    )
    guarantees: dict[str, float] = entry(
        Named(Number(0.0, 1.0, whole=True), tuple(THEOREMS)),
        "by the name of a theorem: the components explain at least this fraction of the optimum; "
        "2013 and 2014 are about ``method`` spannogram, of any sign and nonnegative, 2015 about "
        "bipartite",
    )
    screening: dict = entry(Document(), "empty, or a record of the dropped features")
    repair: dict = entry(
        Document(), "empty, or for ``missing`` pairwise a record of the covariances"
    )


@dataclass(frozen=True)
class Redundancy:
    """How far several components repeat each other: ``redundancy`` of what the solver reports."""

    correlation: float = entry(
        Number(0.0, 1.0, whole=True), "the largest correlation between the scores of two"
    )
    adjusted: float = entry(
        Number(),
        "what all explain, each beyond those before it: in their best order, or, if they are more "
        "than eight, their own; what adds nothing comes last",
    )


@dataclass(frozen=True)
class Repair:
    """Covariances of pairs of features, over the rows that have both entries, moved to the nearest
    positive semidefinite matrix: see :doc:`missing`."""

    moved: float = entry(Number(0.0), "the Frobenius norm of what was added")
    relative: float = entry(Number(0.0), "that, as a part of the norm of the covariances")
    matrix: np.ndarray | None = entry(
        Maybe(Matrix("p", MOST_PAIRED)),
        "the p x p matrix that value and bound speak of; not in the claim without proof",
        optional=True,
    )


# --- cheap bounds (docs/methods/cheap) and enumeration ---


@dataclass(frozen=True)
class Nothing:
    """Nothing is needed beside the data: ``trace`` and ``gershgorin`` are the formulas of
    :doc:`methods/cheap`, and ``enumeration`` looks at every support, see
    :doc:`methods/enumeration`."""


@dataclass(frozen=True)
class Eigenvalues:
    """The bound ``eigenvalues``: the sum of the k largest, of the covariance or of the n x n matrix
    of the products of samples, which has the same ones besides zeros. For overlapping supports and
    a given matrix, k times d is added, where the matrix plus dI is positive semidefinite."""

    matrix: str | None = entry(
        Word("features", "samples"), "which matrix was factored; features if absent", optional=True
    )


@dataclass(frozen=True)
class Clip:
    """Off the diagonal, U = clip(A, -rho, rho) is moved out of A (of its positive part for
    nonnegative components) and each row is charged the s - 1 largest |U| of its own, s the
    largest cardinality: the k largest eigenvalues of what results are the bound, see
    :doc:`methods/cheap`."""

    rho: float = entry(Number(0.0), "the threshold")


@dataclass(frozen=True)
class Frobenius:
    """kc + sqrt(k times the sum of the m largest rho_i), where rho_i = (A_ii - c)^2 plus the s - 1
    largest A_ij^2 of row i and m is the number of nonzeros of all components, see
    :doc:`methods/cheap`."""

    c: float = entry(Number(0.0), "the shift: lambda_max(A_S) <= c + |A_S - cI|")


# --- one component: pair-split certificates and the tree ---


@dataclass(frozen=True)
class ClipSplit:
    """A pair-split certificate by one number: U = clip(A, -rho, rho) off the diagonal (min(A, rho)
    for nonnegative components) and R = 0. A is the matrix of the tree in its unit."""

    clip: float = entry(Number(0.0), "rho")


@dataclass(frozen=True)
class RankOneSplit:
    """A pair-split certificate U = vv' off the diagonal; R_ij = log max(|v_j|, floor) - log
    max(|v_i|, floor), cut off at -25 and 25."""

    features: np.ndarray = entry(Features("n", least=1, names="m"), "places in the core")
    rank_one: np.ndarray = entry(Numbers("m"), "v, one number for each of the features")
    floor: float = entry(Number(above=0.0), "the floor")


@dataclass(frozen=True)
class PairSplit:
    """A pair-split certificate, number by number: V_ij = |U_ij| exp(R_ij), and V_ji the smallest
    number with V_ij V_ji >= U_ij^2; for nonnegative components with max(U_ij, 0) for |U_ij|. U is
    symmetric and R antisymmetric."""

    features: np.ndarray = entry(Features("n", least=1, names="m"), "places in the core")
    u: np.ndarray = entry(Triangle("m"), "U above the diagonal, row by row")
    r: np.ndarray = entry(Triangle("m", -LARGEST_RATIO, LARGEST_RATIO), "R above the diagonal")


SPLITS = (ClipSplit, RankOneSplit, PairSplit)


@dataclass(frozen=True)
class NoTwins:
    """No feature is a multiple of another."""


@dataclass(frozen=True)
class Twins:
    """Features whose rows are multiples of the rows of others, up to rounding. No leader is a twin
    itself. The replay puts c_i c_j A_ab for A_ij, where a, b are the leaders of i, j and c their
    factors (a feature that is no twin leads itself, with factor 1). Of two features with one
    leader, that of the larger |c| can replace the other one; for nonnegative components if the
    factors have one sign, and with prices if it costs no more. No leader has a negative
    variance."""

    features: np.ndarray = entry(Features("n", least=1, names="m"), "places in the core")
    leaders: np.ndarray = entry(Indices("m", "n"), "of which feature each is a multiple")
    factors: np.ndarray = entry(Numbers("m", -1.0, 1.0), "the multiples")


@dataclass(frozen=True)
class Problem:
    """What a tree proves: for unit x with support S in the core, 1 <= |S| <= s, x'Ax less the
    prices of S is at most the bound. Bound, prices and pads are in the units of A; only the
    certificates of the log are in the unit of the tree, so that a replay divides all of them. A log
    for a core of zeros needs no nodes: without pads, and with no price below 0, it proves every
    bound that is at least minus the lowest price (0 without prices)."""

    s: int = entry(Integer(1, "n", names="s"), "the most nonzeros")
    nonnegative: bool = entry(Truth(), "whether only x >= 0 are spoken of")
    bound: float = entry(Number(), "what is proved")
    unit: float = entry(PowerOfTwo(), "certificates speak of the matrix divided by it")
    twins: NoTwins | Twins = entry(Record(NoTwins, Twins), "features that are multiples of others")
    prices: np.ndarray | None = entry(
        Numbers("n"), "the price of each feature; a negative one is a reward", optional=True
    )
    forced: np.ndarray | None = entry(
        Features("n", most="s"), "only supports that contain these features count", optional=True
    )
    listed: tuple[np.ndarray, ...] | None = entry(
        Many(Features("n", least=1, most="s")),
        "supports that the bound does not speak of, nor of those inside one of them",
        optional=True,
    )
    pads: np.ndarray | None = entry(
        Numbers("n", 0.0),
        "supports may hold features outside the core, each at this charge to a row",
        optional=True,
    )


@dataclass(frozen=True)
class Pass:
    """A round of fixing: with one certificate, features are shown to be in no support, or in every
    support, of this node above the bound, each by itself: what the round fixes counts from the next
    one on. The certificate, anywhere in the log, names every feature that is alive. A feature that
    is in both lists shows that the node has no such support. Replay: find l < t and B with M <= l I
    + BB' (leading eigenvectors are a good guess, a Cholesky factorisation proves it) and test each
    feature as :doc:`methods/tree` says, with the drops rounded down."""

    split: int = entry(Integer(1), "the place of the certificate in the list of steps")
    out: np.ndarray = entry(Features("n"), "features in no such support")
    into: np.ndarray = entry(Features("n"), "features in every such support", key="in")


@dataclass(frozen=True)
class Node:
    """The supports S with forced <= S <= alive, |S| <= s. The first node of a list is the root:
    everything alive, the ``forced`` of the problem forced. ``moved`` says how a node differs from
    its parent after the parent's passes: "in" forces the one feature moved, "out" excludes the
    features moved (that one and twins that it can replace), "shrink" excludes one feature of a full
    support. A node is settled at once, and its ``end`` is "empty", when nothing is alive, more than
    s features are forced or a pass has named a feature in both of its lists. Otherwise it is
    settled by its ``end``: "closed" by the bound of a certificate, "leaf" by all its supports one
    by one, "alike" by sums over the pairs of features that are ("Near-duplicates" in
    :doc:`methods/tree`) and by the supports that these leave, one by one, "branch" by two children,
    "in" and "out" of the same feature, "shrink" by one child for each feature, "same" by an earlier
    node whose sets, before its passes, are those of this node after its own. A leaf has supports of
    all sizes up to s if features have prices; otherwise the largest are enough. The leading
    eigenvalue of each must be at most t, for nonnegative components too: only shrinking tells a
    leading vector of two signs. Where supports may hold features outside (pads), a leaf must have s
    forced features, and there are neither twins nor shrinking. A node that shrinks has all its
    features forced, and each child loses one of them; below it no support is settled by being part
    of a listed one."""

    parent: int = entry(Integer(-1), "the place of the parent among the steps; -1 for the root")
    side: str = entry(Word("root", "in", "out", "shrink"), "which child of it this is")
    moved: np.ndarray = entry(Features("n"), "the features moved")
    passes: tuple[Pass, ...] = entry(Many(Record(Pass)), "rounds of fixing, in their order")
    end: str = entry(
        Word("closed", "empty", "leaf", "alike", "branch", "shrink", "same"), "how it is settled"
    )
    split: int | None = entry(Integer(1), "closed: the place of the certificate", optional=True)
    node: int | None = entry(Integer(1), "same: the place of the other node", optional=True)
    alike: np.ndarray | None = entry(
        Features("n", least=1), "alike: the free features that are", optional=True
    )


LOG = Steps("problem", problem=(Problem,), split=SPLITS, node=(Node,))


@dataclass(frozen=True)
class Pad:
    """What the rows of a core are charged for features outside: scale times shape, divided by the
    number of such features and multiplied by the first number of the group."""

    shape: np.ndarray = entry(Numbers("n", above=0.0), "one number for each feature of the core")
    scale: float = entry(Number(above=0.0), "the scale")


@dataclass(frozen=True)
class PadGroup:
    """Pads for supports with first to last features outside the core; any of them may serve."""

    first: int = entry(Integer(1), "the smallest number of features outside")
    last: int = entry(Integer(1), "the largest number of features outside")
    pads: tuple[Pad, ...] = entry(
        Many(Record(Pad), least=1), "each with first scale Diag(shape) <= bound I - M^first"
    )


@dataclass(frozen=True)
class Touch:
    """Supports that leave the core of a tree (:doc:`methods/touch`). For every group form M^first
    with the split, and factor bound I - M^first - first scale Diag(shape) for each of its pads. At
    tau features outside a pad is first scale shape / tau. Every feature outside must pass for every
    tau from 1 to s (less the number of anchors, which lie in the core). Those that are not in
    ``near`` pass with the first pad of each group, with v_j v_a for A_ja^2 and sqrt(v_j v_l) for
    |A_jl|, v being variances; of a given matrix, variances plus a d for which A + dI is positive
    semidefinite. Those in ``near`` pass with any pad, with their variances and covariances to the
    core and among each other as they are (of a given matrix, too), and sqrt(v_j v_l) for l outside
    of ``near``."""

    core: np.ndarray = entry(Features("p", least=1, names="n"), "the features of the core, H")
    split: ClipSplit | RankOneSplit | PairSplit = entry(
        Record(*SPLITS), "the certificate (U, R) of the core, in the units of A"
    )
    near: np.ndarray = entry(
        Features("p"),
        "features outside that are looked at one by one, with their covariances among each other "
        "if they are at most 6000; the others are cleared by variances and the first pads",
    )
    groups: tuple[PadGroup, ...] = entry(
        Many(Record(PadGroup)),
        "one after the other they cover 1 to s - 1 features outside (to s less the number of "
        "anchors, if there are any)",
    )
    bound: float = entry(Number(), "t: no support that leaves the core has a larger value")


@dataclass(frozen=True)
class Tree:
    """For one component; the statement is that of :doc:`methods/tree`. The log is replayed on the
    matrix A of the core, symmetrised and divided by its unit; the bound is the larger one of that
    of the log and that of the touch certificate, plus the rounding of an s-sparse form of A. A log
    with prices proves less than the value and is no proof here; one for nonnegative components
    proves nothing of others.

    Replay, first the sets: go through the nodes in their order, from the root, and keep for each
    the features that are alive and those that are forced. A node has the features its parent was
    left with after the parent's passes, changed as ``side`` and ``moved`` say; a pass may fix only
    features that are alive and not forced. In the end no branch may lack a child. Then the
    matrices: each pass, each closed node, each leaf and each shrunk support is one claim about
    M = A - U + Diag(d) of :doc:`methods/pairsplit` on the features alive, with t the bound divided
    by the unit, less s times the largest change that exact twins make to A divided by the unit."""

    touch: Touch | None = entry(Record(Touch), "when the log speaks of a core only", optional=True)
    log: tuple[Problem | ClipSplit | RankOneSplit | PairSplit | Node, ...] = entry(
        LOG, "the proof on the core, step by step"
    )


# --- several components ---


@dataclass(frozen=True)
class KyFan:
    """For disjoint components, and if all prices are zero for orthogonal ones, with k zeros among
    the eigenvalues; the statement is that of :doc:`methods/kyfan`, "all features". Every
    row of the core chooses s - 1 times, at V_ab - price_b or at the pad, whichever is more; the
    smallest choice of a row is its theta. The bound is the sum of the k largest among the
    eigenvalues of M on the core and the m_j outside, plus the largest prices, as many as there are
    nonzeros. V is that of :ref:`PairSplit`. With a core of fewer than all features the pad must be
    positive unless s = 1."""

    features: np.ndarray = entry(Features("p", least=1, names="n"), "the core")
    u: np.ndarray = entry(Triangle("n"), "U above the diagonal, row by row")
    r: np.ndarray = entry(Triangle("n", -LARGEST_RATIO, LARGEST_RATIO), "R above the diagonal")
    price: np.ndarray = entry(Numbers("n", 0.0), "the price of each feature of the core")
    pad: float = entry(Number(0.0), "the least charge of a row for each of its partners")


@dataclass(frozen=True)
class PricedPart:
    """A tree with these very prices, and with pads if there are features outside the core: no
    support of at most s features is worth more, its prices subtracted, than the bound of its log,
    or than the largest m_j of :doc:`methods/kyfan` with the pads as theta."""

    s: int = entry(Integer(1, "p"), "the most nonzeros")
    log: tuple[Problem | ClipSplit | RankOneSplit | PairSplit | Node, ...] = entry(
        LOG, "the proof, with these prices"
    )


@dataclass(frozen=True)
class Packing:
    """For equal cardinalities, signed components and a core of all features. With pi the bound of
    the part, an answer above the target T uses only supports worth more than T - the prices paid
    - (k - 1) pi. They are enumerated by branching on features and cutting with the pair-split bound
    of (U, R), and the best k disjoint ones among them are found: the bound is the larger one of
    their value and T, see :doc:`methods/configuration`."""

    target: float = entry(
        Number(), "T, in the units of A: no packing is worth more, or its value is the bound"
    )
    u: np.ndarray = entry(Triangle("n"), "U above the diagonal, row by row")
    r: np.ndarray = entry(Triangle("n", -LARGEST_RATIO, LARGEST_RATIO), "R above the diagonal")


@dataclass(frozen=True)
class Configuration:
    """For disjoint components; the statement is that of :doc:`methods/configuration`: the sum of
    all prices and, for each component, of the smallest bound of a part for its cardinality or more.
    Where the core has all features, no variance is negative and the cardinalities sum to t <= p,
    the t largest prices are paid, not all, and prices may be negative; elsewhere they may not. A
    part whose log forces features serves the components that have these among their anchors; a
    bound below zero counts as zero if nothing is forced."""

    features: np.ndarray | None = entry(
        Features("p", least=1, names="n"), "the core; all features if absent", optional=True
    )
    price: np.ndarray = entry(
        Numbers("n"), "the price of each feature of the core, negative for a reward"
    )
    parts: tuple[PricedPart, ...] = entry(
        Many(Record(PricedPart), least=1), "one tree for each cardinality and each list of anchors"
    )
    packing: Packing | None = entry(Record(Packing), "where a gap remained", optional=True)


@dataclass(frozen=True)
class LabelPrices:
    """Prices of some features; all others cost nothing."""

    features: np.ndarray = entry(Features("p", names="m"), "the features that have a price")
    price: np.ndarray = entry(Numbers("m", 0.0), "the price of each of them")


@dataclass(frozen=True)
class LabelGroup:
    """The certificate of components that contain certain features and avoid others, at one list of
    prices (:doc:`methods/labels`, "one group"). Row a of the core pays -price_a; for every
    forced feature b but itself V_ab - price_b as it is, be it negative; and for q_a others V_ab -
    price_b or its pad, whichever is more, where q_a = s - f if it is forced itself and s - f - 1 if
    not, at least zero, f being the number of forced features. theta_a is the last of the q_a, or
    the pad if q_a is zero. Between forced features U counts as zero (of nonnegative
    components only where it is positive); V is that of :ref:`PairSplit`. Up to ``count`` components
    (one, if any feature is forced) are worth the largest of the eigenvalues of M and of the m_b
    outside, as many as they are; where no feature is forced, zeros count as well. Pads must be
    positive where a feature is neither in the core nor banned, unless s = 1."""

    prices: int = entry(Integer(0), "the place of its prices")
    count: int = entry(Integer(1, "p"), "the most components that it is used for")
    forced: np.ndarray = entry(Features("p"), "features that the component contains")
    banned: np.ndarray = entry(Features("p"), "features that it may not contain")
    core: np.ndarray = entry(Features("p", least=1, names="n"), "the core")
    u: np.ndarray = entry(Triangle("n"), "U above the diagonal, row by row")
    r: np.ndarray = entry(Triangle("n", -LARGEST_RATIO, LARGEST_RATIO), "R above the diagonal")
    pads: np.ndarray = entry(Numbers("n", 0.0), "what a row pays at least for each partner")


@dataclass(frozen=True)
class LabelTouch:
    """A certificate for the supports of a group that leave its core (:doc:`methods/labels`, "exact
    pricing"): they are worth no more than the largest eigenvalue of M and the largest m_b with the
    pads for theta. M is that of :ref:`LabelGroup` for s - 1 in place of s, and each row pays its
    pad once more. s is at least 2."""

    u: np.ndarray = entry(Triangle("n"), "U above the diagonal, row by row")
    r: np.ndarray = entry(Triangle("n", -LARGEST_RATIO, LARGEST_RATIO), "R above the diagonal")
    pads: np.ndarray = entry(Numbers("n", 0.0), "what a row pays for each feature outside")


@dataclass(frozen=True)
class LabelTree:
    """The same by branch and bound: no support of at most s features that contains the forced
    features and avoids the banned ones is worth more, its prices subtracted, than the bound of the
    log, or than the largest m_b with the pads of the log for theta. Where ``touch`` is there, the
    log speaks of supports inside the core only, and what it bounds takes the place of the m_b.
    Several components are worth as many times as much, or zero if that is negative and no feature
    is forced. The log has the prices of the core, and forces no other features."""

    prices: int = entry(Integer(0), "the place of its prices")
    forced: np.ndarray = entry(Features("p"), "features that the component contains")
    banned: np.ndarray = entry(Features("p"), "features that it may not contain")
    core: np.ndarray = entry(Features("p", least=1, names="n"), "the core")
    log: tuple[Problem | ClipSplit | RankOneSplit | PairSplit | Node, ...] = entry(
        LOG, "the proof on the core, with these prices, and pads if there are features outside"
    )
    touch: LabelTouch | None = entry(
        Record(LabelTouch), "for supports that leave the core, instead of pads", optional=True
    )


@dataclass(frozen=True)
class LabelCase:
    """A case: either no component of a group contains a feature (``out``), or one of them does and
    no other component (``in``). In the second case a group of several components becomes two: the
    one that contains the feature, and behind it the others."""

    feature: int = entry(Integer(0), "the feature")
    group: int = entry(Integer(0), "the place of the group among those of this case")
    out: int = entry(Integer(1), "the place of the first case")
    into: int = entry(Integer(1), "the place of the second case", key="in")


@dataclass(frozen=True)
class LabelLeaf:
    """The end of a case: a certificate for each group, all at the same prices, whose forced
    features the group contains and whose banned ones it avoids. Groups that name the same
    certificate are bounded together. A leaf with a group of more than s forced features is
    empty and bounds nothing."""

    groups: tuple[int, ...] = entry(Many(Integer(0)), "the places of their certificates")


@dataclass(frozen=True)
class Labels:
    """For disjoint components; the statement is that of :doc:`methods/labels`. The tree of cases
    starts with one group of all k components. The sum of a leaf is that of the prices of all
    features that some group of it does not avoid, and of the bounds of its groups; the bound is the
    largest sum of a leaf. Every case is named by one other case, the first by none."""

    prices: tuple[LabelPrices, ...] = entry(
        Many(Record(LabelPrices), least=1), "the lists of prices"
    )
    groups: tuple[LabelGroup | LabelTree, ...] = entry(
        Many(Record(LabelGroup, LabelTree), least=1), "certificates of groups"
    )
    nodes: tuple[LabelCase | LabelLeaf, ...] = entry(
        Many(Record(LabelCase, LabelLeaf), least=1), "the tree of cases, the first one at its root"
    )


@dataclass(frozen=True)
class Part:
    """A bound for one component alone."""

    s: int = entry(Integer(1, "p"), "the most nonzeros")
    name: str = entry(Text(), "the name of a bound that has no parts itself")
    value: float = entry(Number(), "at least what its proof gives, in the units of the proofs")
    data: dict = entry(Document(), "its proof, a record of that bound")


@dataclass(frozen=True)
class Parts:
    """For components that may share features: the sum of one bound for each, see
    :doc:`methods/parts`. The cardinalities of the parts are those that were asked for. What is
    proved for one component holds for every one of its cardinality: the first part of each is
    replayed, and the sum is made of what that proves, not of the values that the parts state.
    Where components have anchors, parts stand in the order of the components and each is proved for
    the anchors of its own."""

    parts: tuple[Part, ...] = entry(Many(Record(Part), least=1), "one for each component")


@dataclass(frozen=True)
class Neighbour:
    """The statement is that of :doc:`methods/neighbour`, for one component of s nonzeros and data,
    not a matrix that was given. The part speaks of r <= s nonzeros, without anchors. Replay it; the
    bound is what it proves, times s / r."""

    part: Part = entry(Record(Part), "a bound for r nonzeros")


@dataclass(frozen=True)
class LoweredMatrix:
    """H = B - BYY'B with B = A + shift I; the rows of Y that are not stored are zero. The shift is
    at least the d with which a given A is positive semidefinite. The sums n_i of the magnitudes in
    the rows of Y'BY must be below one; theta are the numbers 1 / (1 - n_i), and ones. The parts are
    trees, for one component in H."""

    features: np.ndarray = entry(Features("p", least=1, names="m"), "the rows of Y that are stored")
    y: np.ndarray = entry(Matrix("m", MOST_COMPONENTS), "these rows")
    shift: float = entry(Number(0.0), "what is added to the diagonal of A")


@dataclass(frozen=True)
class RidgeMatrix:
    """H = A + ridge I, where a given A has d added to its diagonal, with which it is positive
    semidefinite. The parts speak of A; the ridge and d are added to what they prove. Replay: for
    each j up to k prove that the j-th eigenvalue l of A is at most nu (M - ZZ' <= nu I, Z of j - 1
    columns), with d added; theta are the numbers nu / (nu + ridge). Eigenvalues beyond the number
    of samples are zero, and so are their theta."""

    # beyond these, quotients may underflow
    ridge: float = entry(Number(low=2.0**-400, high=2.0**400), "what is added to the diagonal of A")
    of: str = entry(Word("features", "samples"), "whether A is factored, or the matrix of samples")


@dataclass(frozen=True)
class Adjusted:
    """For adjusted variances; the statement is that of :doc:`methods/adjusted`: the sum of tau_j
    theta_j, both sorted downwards. tau_j is what the part of the cardinality of a component states,
    proved for one component in the matrix H in place of the covariance."""

    parts: tuple[Part, ...] = entry(Many(Record(Part), least=1), "one for each cardinality")
    matrix: LoweredMatrix | RidgeMatrix = entry(Record(LoweredMatrix, RidgeMatrix), "H")


@dataclass(frozen=True)
class RewardedPart:
    """A tree on the matrix A - LL' + shift I whose prices are rewards, negative or zero: no support
    of at most s features is worth more, with its rewards, than the bound of its log."""

    s: int = entry(Integer(1, "p"), "the most nonzeros")
    log: tuple[Problem | ClipSplit | RankOneSplit | PairSplit | Node, ...] = entry(
        LOG, "the proof, with the rewards of all parts the same"
    )


@dataclass(frozen=True)
class Orthogonal:
    """For orthogonal components; the statement is that of :doc:`methods/orthogonal`: the sum of
    beta and, for each component, the bound of the part of its cardinality less the shift. For every
    feature beta and its reward sum to the diagonal of LL' at least."""

    L: np.ndarray = entry(Matrix("p", MOST_COMPONENTS), "L, with Z = LL'")
    beta: np.ndarray = entry(Numbers("p", 0.0), "what a feature costs once, if it is used")
    shift: float = entry(Number(0.0), "added to the diagonal of A - LL'")
    parts: tuple[RewardedPart, ...] = entry(
        Many(Record(RewardedPart), least=1), "one for each cardinality"
    )


@dataclass(frozen=True)
class CommonProblem:
    """What the log of a common set proves: for the sets T of at most s features, the sum of the k
    largest eigenvalues of A_T that are positive is at most the bound; with features outside the
    core, those of A on the rest of T and the variances of the features outside together."""

    bound: float = entry(Number(0.0), "what is proved")


@dataclass(frozen=True)
class Cut:
    """An inequality for sets of some features: the sum for T is at most k nu and the diagonal of
    LL' + BB' on T, where nu >= 0 and A <= nu I + LL' + BB' on the features. Replay: nu is the k-th
    largest eigenvalue of A - LL', or zero, and B what the larger ones have above it; a Cholesky
    factorisation proves it."""

    features: np.ndarray = entry(Features("n", least=1, names="m"), "places in the core")
    L: np.ndarray = entry(Matrix("m", MOST_COMPONENTS), "L, a row for each of the features")


@dataclass(frozen=True)
class Common:
    """For components in a common set of s features; the statement is that of
    :doc:`methods/common`. The log is that of a :ref:`tree <Node>` whose nodes are sets of features:
    forced <= T <= alive, |T| <= s. A node is "closed" by a cut on its features, if no set of it is
    worth more than the bound by that inequality: all forced features and the largest of the others,
    with those outside the core among these. A pass puts features "out" if that is so for the sets
    with each of them, and "in" if it is so for the sets without. A "leaf" is all the largest sets
    of a node one by one; with features outside the core it must have s forced ones, and the s
    largest variances outside must sum to the bound at most. No node with sets left ends in another
    way, but as a "branch", which moves one feature: there are no twins. Without entries, every set
    is looked at."""

    core: np.ndarray | None = entry(
        Features("p", least=1, names="n"),
        "the features of the log, all if absent; every other one counts its variance",
        optional=True,
    )
    log: tuple[CommonProblem | Cut | Node, ...] | None = entry(
        Steps("problem", problem=(CommonProblem,), split=(Cut,), node=(Node,)),
        "branch and bound on sets",
        optional=True,
    )


@dataclass(frozen=True)
class LowRank:
    """The statement is that of :doc:`methods/lowrank`: the sum of prices, and k times shift +
    level. Replay: prove A <= shift I + VV' (``features``: by a factorisation of order p;
    ``samples``: of order n; ``trace``: by Nystrom's trace), where with ``clip`` A is the matrix of
    that bound. Then expand the tree: it starts from the orthants, those with first coordinate
    positive unless components are nonnegative, the last coordinate alternating fastest; the codes
    of one level of cones stand side by side, a leaf is -1, and a r + b halves the edge between the
    generators a and b, the first half with the midpoint in place of a. On every leaf level G - T
    must be copositive. Prices need disjoint supports."""

    V: np.ndarray = entry(Matrix("p", MOST_RANK), "the sketch: A <= shift I + VV'")
    proof: str = entry(
        Word("features", "samples", "trace"), "which matrix proves the sketch: see the page"
    )
    shift: float = entry(Number(), "what the sketch misses")
    s: int = entry(Integer(1, "p"), "the most nonzeros of a component")
    nonnegative: bool = entry(Truth(), "whether only x >= 0 are spoken of")
    level: float = entry(Number(), "the s largest (v_i.c)^2 less prices sum to no more")
    tree: np.ndarray = entry(
        Codes(-1, 127),
        "the cones level by level: -1 a leaf, otherwise a r + b for the edge that is halved",
    )
    clip: float | None = entry(
        Number(0.0), "entries of A up to it were traded for charges", optional=True
    )
    prices: np.ndarray | None = entry(Numbers("p", 0.0), "the price of a feature", optional=True)


@dataclass(frozen=True)
class Ellipsoid:
    """The statement is that of :doc:`methods/ellipsoid`, for dense data: A = F'F, where F has a row
    for each sample of positive weight, and columns f_i. T must be positive definite. Compute the
    stretch: the largest f_i'(T + w_i w_i')^-1 f_i over all features, with w_i = 0 for those that
    are not named, or one if that is larger. The bound is the stretch times the largest eigenvalue
    of s T + sum w_i w_i', added up over the components."""

    features: np.ndarray = entry(Features("p", names="m"), "the features outside the ellipsoid")
    order: int = entry(Integer(1, MOST_SAMPLES, names="n"), "the order of T")
    T: np.ndarray = entry(Matrix("n", MOST_SAMPLES), "symmetric: the ellipsoid f'T^-1 f <= 1")
    W: np.ndarray = entry(Matrix("m", MOST_SAMPLES), "w_i, one row for each of the features")


@dataclass(frozen=True)
class DspcaDual:
    """The statement is that of :doc:`methods/duals`: the k largest eigenvalues of A + U - penalty I
    on the core, zeros among them, plus penalty times the nonzeros of all components. Where supports
    may overlap, k times the largest one (or zero) stands for the k largest. No entry of U
    may be below -penalty nor, for signed components, above it, and no feature outside the core may
    vary by more than the penalty."""

    penalty: float = entry(Number(0.0), "the penalty")
    core: np.ndarray = entry(Features("p", least=1, names="n"), "every feature that varies more")
    moved: np.ndarray = entry(Triangle("n"), "U above the diagonal, within the penalty")


@dataclass(frozen=True)
class GreedyDual:
    """For one component; the statement is that of :doc:`methods/duals`. With g = Ax / sqrt(x'Ax),
    the core must hold every feature with A_ii > rho or g_i^2 > rho; the bound is rho s plus the
    largest eigenvalue of the Gram matrix that the page writes down. A row with A_ii <= rho is
    zero."""

    rho: float = entry(Number(above=0.0), "the level")
    core: np.ndarray = entry(Features("p", least=1), "every feature that the level leaves")
    support: np.ndarray = entry(Features("p", least=1, names="m"), "the support of x")
    weights: np.ndarray = entry(Numbers("m"), "x")
    shift: float | None = entry(
        Number(0.0),
        "added to the diagonal of a given matrix, which is positive semidefinite then; if absent, "
        "any number that is proved to be enough",
        optional=True,
    )


# --- features that are not in the proof ---


@dataclass(frozen=True)
class DroppedPart:
    """What one component can gain from dropped features."""

    s: int = entry(Integer(1, "P"), "the most nonzeros")
    inside: float = entry(Number(), "the component's bound on the kept features")
    rule: str = entry(Word("variances", "prices", "nothing dropped"), "how it is bounded")
    price: float | None = entry(Number(0.0), "prices: of every kept feature", optional=True)
    split: KyFan | None = entry(Record(KyFan), "prices: the certificate", optional=True)


@dataclass(frozen=True)
class Dropped:
    """From the kept features to all, when only the variances v_1 >= v_2 >= ... of the dropped ones
    are known; which features were kept is no part of the proof. With N nonzeros in all, t of them
    dropped, a choice explains at most B(N - t) + v_1 + ... + v_t, where B(n) is the smaller one of
    ``inside`` and of the n largest variances of kept features; and by the rule ``prices`` also of C
    and the n largest prices, where C is the Ky Fan sum of the certificate with ``price`` on every
    kept feature: M - s price I in the core, m_j - price outside, and k zeros for components that
    lie among the dropped ones. ``price`` must not exceed the pad. ``touching`` is at least the
    largest of these over t >= 1; the bound is the larger one of ``inside`` and ``touching``. By the
    rule ``rows`` ``touching`` is at least the Ky Fan sum of the certificate over all features,
    dropped ones among those outside the core, and the N - 1 largest prices: this needs rows of the
    covariance of all features, from the data. The rule is ``nothing dropped`` if no dropped feature
    varies, and only then (``rows`` is no rule of parts); ``touching`` is then at least zero. A
    common set has N = s features, and neither. Free and orthogonal components have no ``prices``;
    B(n) is for them of the n largest variances alone, unless the bound is ``eigenvalues`` or
    ``trace``, and orthogonal ones have ``rows`` if all prices of the certificate are zero. The
    features of ``split`` are numbered inside ``kept``. With ``parts`` each cardinality has a number
    of its own, for one component alone. A bound ``parts`` of overlapping supports adds up the
    larger ones of inside and touching. A bound ``adjusted`` by Y does so with its matrix H in place
    of the covariance, its heights as weights, and the shift added to every dropped variance; there
    splits of parts number the features of H. Only these two bounds may have ``parts``, and they may
    also be without, for all components together. With ``parts`` the ``rule`` is one of theirs."""

    kept: np.ndarray = entry(Features("P", least=1, names="p"), "the kept features, among all P")
    rule: str = entry(Word("variances", "prices", "rows", "nothing dropped"), "how it is bounded")
    inside: float = entry(Number(), "the bound on the kept features, in the units of the proofs")
    touching: float = entry(Number(), "choices with a dropped feature explain no more")
    price: float | None = entry(Number(0.0), "prices: of every kept feature", optional=True)
    split: KyFan | None = entry(Record(KyFan), "prices, rows: the certificate", optional=True)
    parts: tuple[DroppedPart, ...] | None = entry(
        Many(Record(DroppedPart), least=1), "one component alone: one per cardinality",
        optional=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Among:
    """Beside the entries of its own family, the data of a bound may say which features it speaks
    of: all others are constant or excluded (``kept``), or dropped (``screened``). The proof then
    numbers the features that are left, 0 to p-1, and a component that uses none of them explains
    nothing. Where both are there, ``kept`` numbers features inside ``screened.kept``: those of
    the data are screened.kept[kept]. In a given matrix no feature beside constant ones that are
    left out has a negative variance."""

    screened: Dropped | None = entry(
        Record(Dropped), "the features that were searched, and what the others add", optional=True
    )
    kept: np.ndarray | None = entry(
        Features("p", least=1),
        "the features that vary and are not excluded, among those of the data or the screened ones",
        optional=True,
    )


@dataclass(frozen=True)
class Screening:
    """What a certificate says of dropped features; all of it follows from the data and from the
    record of the dropped features."""

    kept: int = entry(Integer(1), "how many features were kept")
    dropped: int = entry(Integer(0), "how many features that vary were dropped")
    largest_dropped: float = entry(Number(0.0), "the largest variance of a dropped feature")
    rule: str = entry(
        Word("variances", "prices", "rows", "nothing dropped"), "how they are bounded"
    )
    inside: float = entry(Number(), "the bound on the kept features, in the user's units")
    touching: float = entry(Number(), "choices with a dropped feature explain no more")
    support_unchanged: bool = entry(Truth(), "no optimum uses a dropped feature")
    bound_holds: bool = entry(Truth(), "what bounds the kept features bounds all")


# --- alternatives ---


@dataclass(frozen=True)
class ListedSupport:
    """A support that may be above the level, with a vector on it."""

    support: np.ndarray = entry(Features("P", least=1, names="m"), "its features")
    weights: np.ndarray = entry(
        Numbers("m"), "a unit vector on them that none near it surpasses; entries may be zero"
    )
    value: float = entry(
        Number(), "what the vector explains; no less than the component, where it is inside"
    )
    bound: float = entry(
        Number(),
        "what no admissible vector on this support exceeds; near the value, unless nonnegative",
    )
    count: int = entry(Integer(1), "how many supports are the same up to exchanges")


@dataclass(frozen=True)
class FeatureCost:
    """The best answer without a feature, or with it, explains between value and bound. The answer
    behind it is a result of its own, or on the list."""

    feature: int = entry(Integer(0), "the feature")
    value: float = entry(Number(), "what an answer without it (with it) explains")
    bound: float = entry(Number(), "what no answer without it (with it) exceeds")


@dataclass(frozen=True)
class NearbyClaim:
    """The supports near one component, see :doc:`methods/listing`. Numbers are in the user's units;
    features are numbered as in the data. ``proof`` is the record of a tree whose log has a list
    (its bound, with the rounding of an s-sparse form, is the level) and the entry ``kept`` of
    :ref:`Among`: the features that are neither constant, nor excluded, nor used by another
    component. In a screened table these are numbered among the kept ones, and the entry
    ``screened`` bounds supports with a dropped feature: the level is at least ``touching``,
    where ``inside`` is at least the level of the tree and the bounds of the listed supports."""

    component: int = entry(Integer(0), "which component")
    value: float = entry(Number(), "what it explains")
    rounding: float = entry(
        Number(0.0), "by how much rounding may have raised this value and those of the list"
    )
    asked: float = entry(
        Number(), "(1 - within) times the value less its rounding: the level that was asked for"
    )
    level: float = entry(Number(), "every support above it is inside a listed one, up to exchanges")
    supports: tuple[ListedSupport, ...] = entry(
        Many(Record(ListedSupport)), "the list, the largest value first"
    )
    groups: tuple[np.ndarray, ...] = entry(
        Many(Features("P", least=2)),
        "features that can be exchanged: the twins of the log, of factors 1 and -1, or only 1 for "
        "nonnegative components",
    )
    drops: tuple[FeatureCost, ...] = entry(
        Many(Record(FeatureCost)), "features of the component: the best answer without each"
    )
    forces: tuple[FeatureCost, ...] = entry(
        Many(Record(FeatureCost)), "some outsiders: the best answer with each"
    )
    outsiders: np.ndarray = entry(
        Features("P", names="o"), "the other features of the proof; none if none has a place"
    )
    leaving: np.ndarray = entry(
        Indices("o", "P"), "the member in whose place each does best; itself where there is room"
    )
    with_value: np.ndarray = entry(Numbers("o"), "what an answer with each explains")
    with_bound: np.ndarray = entry(Numbers("o"), "what no answer with each exceeds")
    proof: dict = entry(Document(), "the tree and its kept features")
