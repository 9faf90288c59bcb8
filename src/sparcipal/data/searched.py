"""The features that are searched: all, or those that vary most when rows are read in passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..problem.components import least_loss
from ..problem.constraints import Constraints
from ..problem.monitor import Monitor
from ..problem.problem import Component
from .facts import Data, data_of_pairs, data_of_screened, data_of_table, varying
from .inputs import Input
from .notes import joined, on_constants, on_copies, on_trends
from .passes import BESIDE, FIRST, SQUARES, Stream
from .rows import MatrixRows, Rows, formed_bytes, working_bytes
from .screening import Screened
from .strips import EveryRow
from .sums import Sums
from .table import Table

ALIKE = 0.9999  # features that correlate so much say the same
COMPARED = 5_000_000  # pairs of features that are compared at most
ROWS = 10_000  # rows that are enough to see a trend
# A table that takes more than the covariance of the features that are kept at first is sooner read
# in passes if it has many samples: 300,000 x 100 took 3.3 CPU s and 853 MB, and 1.0 s and 7 MB so.
LARGE = 8 * SQUARES * FIRST**2
# With fewer samples than features that is so of several components if all covariances take more
# products than this: 2,000 x 20,000 took 31 CPU s for a gap of 31 %, and 9 s for one of 3.4 %.
SCREENED = 2e11
EXCHANGES = 1  # rounds in which kept features are exchanged, where no more of them fit
CHEAP = 2e10  # nanoseconds of one core, by count, for all rows of a covariance
GAINS = 2  # rounds in which features are kept that a component would gain from


@dataclass(frozen=True)
class Known:
    """An answer among the kept features: its components and their variances, in inside units."""

    components: Sequence[Component]
    values: Sequence[float]
    nonnegative: bool


class Searched:
    """Holds the covariance of the features that are searched; `more` reads further features.

    Parameters
    ----------
    given : Input
    center, scale : bool
    memory_limit : int
    monitor : Monitor
    """

    def __init__(
        self, given: Input, center: bool, scale: bool, memory_limit: int, monitor: Monitor
    ) -> None:
        self.given, self._monitor = given, monitor
        self._stream: Stream | None = None
        self._held: _Held | None = None  # a table in memory, whose road `begin` chooses
        self._data: Data | None = None
        self._rough = False  # whether the default proof of several disjoint components is asked for
        self._barred: tuple[int, ...] = ()  # features that may not be used,
        self._anchors: tuple[int, ...] = ()  # and those that must be, of loading zero perhaps
        self._screened: Screened | None = None  # of the rows that were read last
        self._needed = self._count = self._exchanges = self._replaced = self._gained = 0
        source, names = given.source, given.feature_names
        if isinstance(source, Rows):
            self._stream = Stream(source, center, scale, memory_limit)
        elif given.gaps is not None and given.gaps.pairs:
            self._use(data_of_pairs(given, center, scale))
        elif isinstance(source, Table):
            self._held = _Held(given, center, scale, memory_limit)
        elif isinstance(source, Sums):
            self._use(data_of_screened(source.screened(center, scale), names))
        elif scale:
            raise ValueError("scale needs the data; pass X instead of covariance")
        elif isinstance(source, Screened):
            self._use(data_of_screened(source, names))
        else:
            self._use(Data(varying(source), names))

    @property
    def data(self) -> Data:
        return self._hold()

    def _hold(self) -> Data:
        """Return the covariance, which is formed of a table in memory that is searched whole."""
        if self._data is None:
            assert self._held is not None, "rows are read by `begin`"
            self._use(self._held.data())
        assert self._data is not None
        return self._data

    @property
    def notes(self) -> tuple[str, ...]:
        """What was set aside, in sentences: columns of the source, and constants among them."""
        return joined(self.given.notes, self.on_constants)

    @property
    def on_constants(self) -> tuple[str, ...]:
        """Name the features that do not vary: they keep their places and are not fitted."""
        constant = self.data.constant
        return () if constant is None else on_constants(constant, self.given.feature_names)

    def on_copies(self, used: np.ndarray) -> tuple[str, ...]:
        """Name the features that say the same as used ones, where all features are searched."""
        covariance = self.data.covariance
        if self.data.survivors is not None or used.size * covariance.n_features > COMPARED:
            return ()
        variances = covariance.diagonal
        beside = np.square(covariance.submatrix(used, np.arange(covariance.n_features)))
        alike = beside >= ALIKE**2 * np.outer(variances[used], variances)
        alike &= (variances > 0) & (variances[used] > 0)[:, None]
        row, other = np.nonzero(alike)
        first, second = np.minimum(used[row], other), np.maximum(used[row], other)
        different = first < second
        codes = first[different] * covariance.n_features + second[different]
        codes, place = np.unique(codes, return_index=True)
        pairs = np.stack(np.divmod(codes, covariance.n_features), axis=1)
        row, other = row[different][place], other[different][place]
        apart = 1 - beside[row, other] / variances[used[row]] / variances[other]
        nearest = np.argsort(apart, kind="stable")
        return on_copies(pairs[nearest], apart[nearest], ALIKE, self.given.feature_names)

    def on_trends(self, used: np.ndarray) -> tuple[str, ...]:
        """Say that the used features of a table in memory trend from row to row, if they do."""
        source = self.given.source
        if not isinstance(source, Table) or sp.issparse(source.X) or source.texts is not None:
            return ()
        columns, gaps = np.asarray(source.X[:ROWS, used], dtype=float), self.given.gaps
        if gaps is not None and gaps.entries and gaps.fill is not None:
            # entries that were filled with one number are steps from row to row
            columns = np.where(columns == gaps.fill[used], np.nan, columns)
        return on_trends(columns)

    def begin(
        self, needed: int, asked: Constraints, *, rough: bool = False, apart: bool = False
    ) -> None:
        """Read the rows, if data come in rows, for an answer of `needed` nonzeros; `rough` where
        its proof may leave a small gap. A table in memory is read in passes, too, where that is
        sooner done: `apart` says that components share no feature and their variances are added."""
        self._needed, self._rough = needed, rough and apart
        held = self._held
        if held is not None and self._data is None and held.sooner_in_passes(rough and apart):
            self._stream, self._held = held.stream(), None
        self._ask(asked)
        stream = self._stream
        if stream is None:
            self._hold()
            return
        stream.count(self._monitor)
        count = stream.first(needed, rough)
        if self._data is not None and self._count >= count:
            return
        if count < stream.n_features and not stream.looked and stream.alike(needed, count):
            stream.look(self._monitor)
        self._read(stream, count)

    def back_to(self, kept: np.ndarray) -> None:
        """Have features searched that were kept before, for an answer with what `begin` was
        told."""
        if self.data.survivors is None or not np.array_equal(self.data.survivors.kept, kept):
            self._read_among(kept, self._needed)

    def _ask(self, asked: Constraints) -> None:
        """Keep what must be used; what may not be used is not kept, and adds nothing."""
        self._barred = asked.exclude
        self._anchors = tuple(feature for own in asked.include for feature in own)
        if self._stream is not None:
            self._stream.ask(asked)
        elif self._data is not None:
            self._use(self._data)

    def among(self, kept: np.ndarray, needed: int, asked: Constraints) -> None:
        """Read the rows, if data come in rows, for the covariance of the features `kept`, which an
        answer of `needed` nonzeros was searched among."""
        self._ask(asked)
        self._read_among(kept, needed)

    def _read_among(self, kept: np.ndarray, needed: int) -> None:
        stream = self._stream
        if stream is not None:
            stream.count(self._monitor)
            most = stream.most(needed)
            if kept.size > most:
                raise ValueError(
                    f"the result was searched among {kept.size} features, and the covariance of "
                    f"{most} fits memory_limit={stream.memory_limit}; raise it, or fit again with "
                    "this one"
                )
            self._read(stream, kept.size, kept)
        elif self.data.survivors is not None:
            own = self.data.survivors.kept
            if not np.array_equal(own, kept):
                raise ValueError(
                    f"the data know the covariance of {own.size} features, others than the "
                    f"{kept.size} that the result was searched among; pass the data it came from"
                )

    def more(self, enough: float, known: Known) -> bool:
        """Keep more features, so that few of variance above `enough` are left; False if it cannot.

        Features that covary with others or with the known components are looked for by a pass,
        which may also exchange features where no more fit. Raises KeyboardInterrupt or
        TimeoutError when a pass is stopped.
        """
        stream = self._stream
        if stream is None or self._monitor.stopped is not None:
            return False
        full = stream.full(self._count, self._needed)
        kept = self.data.survivors
        if kept is None or kept.n_dropped == 0 or (full and self._exchanges == EXCHANGES):
            return False
        unit = self.data.covariance.unit
        own = [Component(kept.kept[c.support], c.weights) for c in known.components]
        stream.look(self._monitor, own, [v * unit for v in known.values], known.nonnegative)
        self._exchanges += full
        count = self._count
        count = count if full else stream.more(count, self._needed, enough * unit)
        chosen = stream.chosen(count, np.unique(np.concatenate([c.support for c in own])))
        if full and np.array_equal(chosen, kept.kept):
            return False
        self._read(stream, count, chosen)
        return True

    def beside(self, known: Known) -> bool:
        """Keep the features outside that the components would gain from; False if there are none,
        or if that was done enough. Others make room for them where no more fit.

        Raises KeyboardInterrupt or TimeoutError when the pass is stopped.
        """
        stream, kept = self._stream, self.data.survivors
        if not self.in_passes or kept is None or kept.n_dropped == 0 or self._gained == GAINS:
            return False
        assert stream is not None
        self._gained += 1
        cov, unit = self.data.covariance, self.data.covariance.unit
        losses = [least_loss(cov, c.support, known.nonnegative) * unit for c in known.components]
        own = [Component(kept.kept[c.support], c.weights) for c in known.components]
        values = [v * unit for v in known.values]
        found = stream.beside(self._monitor, own, values, losses, known.nonnegative)
        found = found[~np.isin(found, kept.kept)][: max(self._count // 2, 1)]
        if not found.size:
            return False
        count = min(self._count + found.size, stream.most(self._needed))
        if count < self._count + found.size:
            self._exchange(stream, found, known)
        else:
            self._read(stream, count, np.union1d(kept.kept, found))
        return True

    def exchange(self, missed: np.ndarray, known: Known) -> bool:
        """Keep the features that were missed instead of others; False if that was done enough."""
        stream, kept = self._stream, self.data.survivors
        if stream is None or kept is None or not missed.size or self._replaced == EXCHANGES:
            return False
        self._replaced += 1
        self._exchange(stream, missed, known)
        return True

    def _exchange(self, stream: Stream, missed: np.ndarray, known: Known) -> None:
        kept = self.data.survivors
        assert kept is not None
        used = [kept.kept[c.support] for c in known.components]
        own = np.concatenate([np.array(self._anchors, dtype=np.intp), *used])
        by_variance = stream.order()
        rest = by_variance[np.isin(by_variance, kept.kept)]
        wanted = np.concatenate([own, missed[~np.isin(missed, self._barred)], rest])
        first = np.sort(np.unique(wanted, return_index=True)[1])
        self._read(stream, self._count, np.sort(wanted[first[: self._count]]))

    def measure_in(self, unit: float) -> None:
        """Use the unit of an answer. That of a table follows from its entries, but that of sums
        over rows from variances, which rounding moves from one reading to another."""
        kept = self.data.survivors
        if kept is not None and kept.covariance.unit != unit:
            kept = kept.measured_in(unit)
            self._use(replace(self.data, covariance=kept.covariance, survivors=kept))

    @property
    def looked(self) -> bool:
        """Whether the kept features were chosen by what they covary with."""
        return self._stream is not None and self._stream.looked

    def room(self, memory_limit: int) -> float:
        """Return the bytes that are left for a proof."""
        if self._held is None:
            return memory_limit * BESIDE
        return float(memory_limit - self._held.nbytes)

    @property
    def in_passes(self) -> bool:
        """Whether rows may be read once more."""
        return self._stream is not None and self._monitor.stopped is None

    @property
    def rows_are_cheap(self) -> bool:
        """Whether the default proof of several components may read the covariances of all
        features."""
        stream = self._stream
        if stream is None or not (self._rough and self.in_passes):
            return False
        return stream.all_rows_work() <= CHEAP

    def every_row(self) -> EveryRow:
        """Return rows of the covariance of all features of a table that is read in passes."""
        assert self._stream is not None
        assert self._screened is not None
        unit = self.data.covariance.unit
        return self._stream.every_row(self._screened, unit, self._monitor)

    def _read(self, stream: Stream, count: int, chosen: np.ndarray | None = None) -> None:
        kept = stream.chosen(count) if chosen is None else chosen
        self._screened = stream.screened(kept, self._monitor)
        data = data_of_screened(self._screened, self.given.feature_names, consume=True)
        self._use(replace(data, gaps=self.given.gaps))
        self._count = count

    def _use(self, data: Data) -> None:
        if data.survivors is not None and self._barred:
            data = replace(data, survivors=data.survivors.without(self._barred))
        self._data = data
        self._monitor.measure_in(data.covariance.unit)


@dataclass(frozen=True)
class _Held:
    """A table in memory, and how its covariance is formed."""

    given: Input
    center: bool
    scale: bool
    memory_limit: int

    def sooner_in_passes(self, rough: bool) -> bool:
        """Return whether passes over its rows cost less than a copy of it that is centred.

        That is so of a large table of many samples, if the covariance of its features is formed all
        the same: with all of them, or where a `rough` proof begins with those that vary most.
        """
        table = self.given.source
        assert isinstance(table, Table)
        n, p = table.shape
        if working_bytes(table.X) <= LARGE or self.memory_limit < LARGE:
            return False
        if n >= p and p <= FIRST:
            return True
        return rough and (sp.issparse(table.X) or n >= p or float(n) * p**2 > SCREENED)

    @property
    def nbytes(self) -> int:
        """Bytes of the table once it is centred, and of its covariance where that is formed."""
        table = self.given.source
        assert isinstance(table, Table)
        return working_bytes(table.X) + formed_bytes(table.shape[1])

    def data(self) -> Data:
        return data_of_table(self.given, self.center, self.scale)

    def stream(self) -> Stream:
        table, weights = self.given.source, self.given.sample_weight
        assert isinstance(table, Table)
        rows = MatrixRows(table)
        rows = rows if weights is None else rows.weighted(weights)
        return Stream(rows, self.center, self.scale, self.memory_limit)
