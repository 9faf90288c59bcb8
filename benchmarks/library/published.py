"""What others have printed on instances of the library, as printed; and what they say of scale.

Only figures whose source was read are here:

- Asteris et al. 2015: the tables of the paper.
- Li & Xie 2025, the version in the INFORMS Journal on Computing: the files that accompany it
  (INFORMSJoC/2022.0372 on GitHub, results/table2.csv and table5.csv to table10.csv).
- Berk & Bertsimas 2019: values of their tables 6 and 7, as the tests of their software repeat them
  (lauren897/Optimal-SPCA on GitHub, Algorithm/test1.jl); times are not.
- Bertsimas, Cory-Wright & Pauphilet 2022: the optimal values behind their table 2, as the script
  that makes it repeats them (ryancorywright/ScalableSPCA.jl on GitHub); gaps and times are not.

Of the others there is what their abstracts say.
"""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A printed figure: who, with which method, value, gap and time, and what else is said."""

    instance: str
    author: str
    method: str
    value: str
    gap: str = "-"
    seconds: str = "-"
    said: str = ""

    @property
    def half(self) -> float:
        """Half a unit of the last digit of the printed value."""
        digits, _, power = self.value.partition("e")
        return 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))

    @property
    def least(self) -> float:
        """The least value that is printed so; 0 where none is printed."""
        return 0.0 if self.value == "-" else float(self.value) - self.half


ALL = 10**9  # no limit
_JOINT = "Asteris et al. 2015"
_COLUMNS = ("TPower", "EM", "SpanSPCA", "SPCABiPart")
_SUMS = {
    "arcene-5x40": ("1.08e7", "1.02e7", "1.08e7", "1.10e7"),
    "isolet-5x40": ("33.1", "34.3", "33.4", "35.1"),
    "leukemia-5x40": ("5.00e9", "5.03e9", "4.84e9", "5.37e9"),
    "mfeat-5x40": ("500", "527", "508", "547"),
    "kos-8x15": ("41.4", "42.4", "42.1", "61.4"),
    "nips-8x15": ("2.51e3", "2.57e3", "2.53e3", "3.34e3"),
    "nips-8x10": ("2.5999e3", "", "2.5981e3", "3.2090e3"),
}
_EXACT = "Li & Xie 2025"
_SOLVERS = ("branch and cut", "branch and cut (15)", "MILP", "Gurobi, nonconvex")
# Pitprops by nonzeros: values and seconds of these (table2.csv), values to eight digits.
_EXACTLY = {
    4: (("2.9374789", "5"), ("2.9374789", "5"), ("2.9374789", "8"), ("2.9374832", "0")),
    5: (("3.4061549", "7"), ("3.4061549", "7"), ("3.4061549", "8"), ("3.4061577", "3")),
    6: (("3.7709596", "7"), ("3.7709596", "7"), ("3.7709594", "8"), ("3.7709690", "1")),
    7: (("3.9961896", "4"), ("3.9961896", "4"), ("3.9961895", "8"), ("3.9961951", "4")),
    8: (("4.0686073", "7"), ("4.0686073", "7"), ("4.0686070", "8"), ("4.0686117", "10")),
    9: (("4.1386469", "7"), ("4.1386469", "7"), ("4.1386465", "8"), ("4.1386519", "10")),
    10: (("4.1726377", "3"), ("4.1726377", "3"), ("4.1726371", "8"), ("4.1726443", "5")),
}
# The gaps that the paper's relaxations leave there, in percent, and their seconds (table5.csv).
_RELAXATIONS = (("(8)", "0"), ("(13)", "7"), ("(16)", "0"), ("(17)", "0"))
_RELAXED = {
    4: ("5.75", "43.6", "0.409", "2.71"),
    5: ("2.37", "23.9", "0.185", "1.53"),
    6: ("0.395", "11.9", "0.151", "1.13"),
    7: ("9.3e-6", "5.57", "9.7e-6", "0.886"),
    8: ("0.291", "3.69", "0.262", "1.87"),
    9: ("1.1e-5", "1.93", "0.0281", "1.63"),
    10: ("0.0887", "1.10", "0.123", "1.10"),
}
# How far its heuristics end below the optimum there, in percent.
_HEURISTICS = ("truncation", "randomised", "SDP rounding", "greedy", "local search")
_ROUNDED = {
    4: ("1.57 %", "17.9 %", "0", "0", "0"),
    5: ("0.323 %", "15.7 %", "0", "0", "0"),
    6: ("0.354 %", "17.3 %", "0", "0", "0"),
    7: ("0.0815 %", "14.1 %", "0", "0", "0"),
    8: ("0.0933 %", "4.51 %", "14.4 %", "0", "0"),
    9: ("0.175 %", "9.41 %", "2.59 %", "0", "0"),
    10: ("3.90 %", "11.5 %", "1.34 %", "0", "0"),
}
_BRANCHED = "Berk & Bertsimas 2019"
_OPTIMAL = (
    ("pitprops-1x5", "3.40615"),
    ("pitprops-1x10", "4.17264"),
    ("wine-1x5", "3.43978"),
    ("wine-1x10", "4.59429"),
    ("wine-covariance-1x5", "99201.31"),
    ("wine-covariance-1x10", "99201.78"),
    ("miniboone-1x5", "5.0000"),
    ("miniboone-1x10", "9.99999"),
    ("communities-1x5", "4.86051"),
    ("communities-1x10", "8.8236"),
)
_SEMIDEFINITE = "Bertsimas, Cory-Wright & Pauphilet 2022"
_CONFIRMED = (
    ("pitprops-1x5", "3.406"),
    ("pitprops-1x10", "4.173"),
    ("wine-1x5", "3.43978"),
    ("wine-1x10", "4.59429"),
    ("miniboone-1x5", "5.0000"),
    ("miniboone-1x10", "9.9999999"),
)


def _listed() -> list[Published]:
    rows = [
        Published(instance, _JOINT, method, value, said="no bound")
        for instance, values in _SUMS.items()
        for method, value in zip(_COLUMNS, values)
        if value
    ]
    for s, found in _EXACTLY.items():
        name = f"pitprops-1x{s}"
        rows += [
            Published(name, _EXACT, solver, value, seconds=spent)
            for solver, (value, spent) in zip(_SOLVERS, found)
        ]
        rows += [
            Published(name, _EXACT, f"relaxation {number}", "-", f"{gap} %", spent, "upper bound")
            for (number, spent), gap in zip(_RELAXATIONS, _RELAXED[s])
        ]
    for s, gaps in _ROUNDED.items():
        said = "below the optimum: " + ", ".join(map(" ".join, zip(_HEURISTICS, gaps)))
        rows.append(Published(f"pitprops-1x{s}", _EXACT, "heuristics", "-", "-", "0", said))
    rows += [
        Published(name, _BRANCHED, "branch and bound", value, said="optimal; tables 6 and 7")
        for name, value in _OPTIMAL
    ]
    rows += [
        Published(name, _SEMIDEFINITE, "outer approximation", value, said="optimal; table 2")
        for name, value in _CONFIRMED
    ]
    return rows


PUBLISHED = _listed()


class Scale(NamedTuple):
    """What others say of the problems that they solve, and which of ours are of that size.

    Limits are inclusive, and those of the words: where these have none, there is none here.
    """

    author: str
    said: str
    features: tuple[int, int]
    nonzeros: tuple[int, int] = (1, ALL)
    components: tuple[int, int] = (1, 1)

    @property
    def rule(self) -> str:
        """The filter in words."""
        return ", ".join(
            f"{_between(*limits)} {what}{'s' if limits != (1, 1) else ''}"
            for limits, what in (
                (self.features, "feature"),
                (self.nonzeros, "nonzero"),
                (self.components, "component"),
            )
            if limits != (1, ALL)
        )


def _between(least: int, most: int) -> str:
    if most == ALL:
        return f"from {least:,}"
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


SCALES = [
    Scale(
        "Berk & Bertsimas 2019",
        "optimal in seconds for hundreds of features and tens of nonzeros; beyond 10,000 features "
        "hours for a proof",
        (100, 999),
        (1, 99),
    ),
    Scale(
        "Berk & Bertsimas 2019",
        "the same, tens of thousands of features",
        (10_000, 99_999),
        (1, 99),
    ),
    Scale(
        "Bertsimas, Cory-Wright & Pauphilet 2022",
        "optimal for 5 nonzeros of 300 features",
        (1, 300),
        (5, 5),
    ),
    Scale(
        "Bertsimas, Cory-Wright & Pauphilet 2022",
        "gaps of 1 to 2 % in minutes for hundreds of features",
        (100, 999),
    ),
    Scale(
        "Bertsimas, Cory-Wright & Pauphilet 2022",
        "the same gaps in hours for thousands of features",
        (1_000, 9_999),
    ),
    Scale(
        "Dey, Mazumder & Wang 2022",
        "dual bounds for covariances up to 2000 x 2000; gaps not at hand",
        (1, 2_000),
    ),
    Scale(
        "Cory-Wright & Pauphilet 2022",
        "gaps of 0 to 15 %, about 3 % on average, for two or three components of hundreds to "
        "thousands of features, which are orthogonal there and disjoint here",
        (100, 9_999),
        components=(2, 3),
    ),
    Scale(
        "Li & Xie 2025",
        "optimal for hundreds of features; near-optimal without proof for thousands",
        (100, 999),
    ),
    Scale(
        "Li & Xie 2025",
        "four relaxations, an hour for each, s = 10 and 20: of 64 features one ends, (13) (gaps "
        "88.5 and 31.3 %, 85 and 86 s); of 79 three, (16) and (17) with a gap (at most 0.00031 and "
        "2.3 %, 118 to 551 s), (13) without one (135 and 124 s); of 118, 500 and 2000 none (tables "
        "6 and 7; of genes 79, 118 and 500 features, of text 2000)",
        (64, 2_000),
        (10, 20),
    ),
    Scale(
        "Behdin & Mazumder 2021",
        "20,000 features in minutes; an estimator for spiked covariances, which minimises another "
        "function, so that values cannot be compared",
        (20_000, ALL),
    ),
]
