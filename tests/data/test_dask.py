"""dask: the same bits whatever the workers, their number, their order and their deaths."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, SparsePCA, read, sparse_pca
from sparcipal.data import rows as rows_module
from sparcipal.data.layout import Layout
from sparcipal.data.sources import as_rows
from tests.support.deadly import DeadlyElsewhere, Tripling, deadly

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
joblib = pytest.importorskip("joblib")

Callback = pytest.importorskip("dask.callbacks").Callback
key_split = pytest.importorskip("dask.utils").key_split
daskpass = pytest.importorskip("sparcipal.data.daskpass")

# Answers are compared here, not judged: the quickest method will do.
QUICK = {"certify": False, "method": "threshold"}
NAMES = [f"word{i}" for i in range(7)]


def counts(n=103, p=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(2.0, size=(n, p))
    X[:, 1] += X[:, 0]
    X[:, 3] += 2 * X[:, 2]
    return X


def cuts(X, size, kind=np.asarray):
    return [dask.delayed(kind(X[i : i + size])) for i in range(0, X.shape[0], size)]


def frame(X, parts):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=parts)


KINDS = {
    "array": lambda X: da.from_array(X, chunks=(20, -1)),
    "array chunked by columns": lambda X: da.from_array(X, chunks=(11, 3)),
    "sparse blocks": lambda X: da.from_array(X, chunks=(20, -1)).map_blocks(sp.csr_matrix),
    "sparse blocks chunked by columns": lambda X: da.from_array(X, chunks=(20, 3)).map_blocks(
        sp.csr_array
    ),
    "frame": lambda X: frame(X, 4),
    "array of unknown chunks": lambda X: frame(X, 4).values,
    "delayed": lambda X: cuts(X, 9),
    "delayed sparse": lambda X: cuts(X, 9, sp.csr_array),
    "one delayed": lambda X: dask.delayed(X),
    "an empty block among others": lambda X: [*cuts(X, 30), dask.delayed(X[:0])],
    "many blocks": lambda X: cuts(X, 1),
}


def same(first, second):
    """Two accumulators hold the same bits."""
    one, two = ({k: v for k, v in vars(m).items() if k != "_reach"} for m in (first, second))
    return one.keys() == two.keys() and all(
        np.array_equal(one[name], two[name], equal_nan=False)
        if isinstance(one[name], np.ndarray)
        else one[name] == two[name]
        for name in one
    )


def same_answer(first, second):
    return (
        all(map(np.array_equal, first.supports, second.supports))
        and all(map(np.array_equal, first.weights, second.weights))
        and first.value == second.value
        and first.certificate.bound == second.certificate.bound
        and np.array_equal(first.mean, second.mean)
    )


# --- threads ---


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_integers_do_not_depend_on_blocks(kind):
    X = counts()
    rows = as_rows(KINDS[kind](X))
    moments = rows.accumulate(Moments(rows.n_features))
    assert same(moments, Moments(7).add(X))
    assert rows.n_samples == 103
    gram = rows.accumulate(moments.gram([0, 2, 5]))
    assert np.array_equal(gram.second, X[:, [0, 2, 5]].T @ X[:, [0, 2, 5]])
    assert rows.feature_names == (tuple(NAMES) if kind == "frame" else None)


@pytest.mark.parametrize("kind", KINDS)
def test_small_lazy_data_is_gathered(kind):
    X = counts()
    table = read(KINDS[kind](X))
    dense = table.X.toarray() if sp.issparse(table.X) else table.X
    assert np.array_equal(dense, X)
    assert sp.issparse(table.X) == ("sparse" in kind)
    in_memory = sp.csr_array(X) if "sparse" in kind else X
    question = {"n_components": 2, "n_nonzero_coefs": 2, **QUICK}
    assert same_answer(sparse_pca(KINDS[kind](X), **question), sparse_pca(in_memory, **question))


def test_answers_in_passes_do_not_depend_on_blocks():
    X = counts()
    question = {"n_components": 2, "n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    expected = sparse_pca(lambda: iter([X]), **question)
    assert expected.certificate.screening
    for kind, make in KINDS.items():
        assert same_answer(sparse_pca(make(X), **question), expected), kind


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_sums_of_floats_do_not_depend_on_the_scheduler(scheduler):
    X = np.random.default_rng(0).standard_normal((500, 6))
    rows = as_rows(da.from_array(X, chunks=(7, -1)))
    with dask.config.set(scheduler="synchronous"):
        reference = rows.accumulate(Moments(6))
        gram = rows.accumulate(reference.gram(np.arange(6)))
    with dask.config.set(scheduler=scheduler, num_workers=4):
        assert same(rows.accumulate(Moments(6)), reference)
        assert same(rows.accumulate(reference.gram(np.arange(6))), gram)
    assert np.allclose(reference.variances(), X.var(axis=0), rtol=1e-13)


def test_sample_weights_find_their_rows():
    X, weights = counts(), np.random.default_rng(1).uniform(0, 2, 103)
    for kind in ("array", "frame", "delayed sparse"):
        rows = as_rows(KINDS[kind](X)).weighted(weights)
        mean = np.average(X, axis=0, weights=weights)
        assert np.allclose(rows.accumulate(Moments(7)).means(), mean, rtol=1e-13)
    rows = as_rows(KINDS["delayed"](X)).weighted(weights[1:])
    with pytest.raises(ValueError, match="102 entries, but there are 103 rows"):
        rows.accumulate(Moments(7))


def broken(number, make):
    parts = cuts(counts().astype(float), 30)
    parts[number] = dask.delayed(make)()
    return parts


def rows_with_nan():
    block = np.ones((4, 7))
    block[2, 3] = np.nan
    return block


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (lambda: broken(2, rows_with_nan), "block 2 of X: X contains 1 NaN, the first in row 2"),
        (lambda: broken(1, lambda: np.ones((4, 6))), "block 1 of X has 6 columns instead of 7"),
        (lambda: broken(3, lambda: np.array([["a"] * 7])), "block 3 of X: .*dtype"),
        (lambda: broken(1, lambda: np.ones(7)), "block 1 of X: Expected 2D array"),
        (lambda: [dask.delayed(np.ones((0, 3)))], "all 1 blocks of X are empty"),
        (lambda: da.ones(5, chunks=2), "X has 1 dimensions"),
        (
            lambda: [
                dask.delayed(pd.DataFrame({"a": [1]})),
                dask.delayed(pd.DataFrame({"b": [1]})),
            ],
            "block 1 of X: it lacks .* and has",
        ),
    ],
)
def test_dask_errors_name_the_block(X, words):
    def summed():
        rows = as_rows(X())
        rows.accumulate(Moments(rows.n_features))

    with pytest.raises(ValueError, match=words):
        summed()


def test_other_lazy_things_are_refused():
    bag = pytest.importorskip("dask.bag")
    with pytest.raises(
        TypeError, match="pass a dask array, a dask data frame or a list of delayed"
    ):
        as_rows(bag.from_sequence([1, 2]))


def test_blocks_that_change_are_noticed():
    made = []

    def growing():
        made.append(1)
        return np.ones((1 + len(made), 2)) * np.arange(2)

    rows = as_rows([dask.delayed(growing, pure=False)()])
    rows.accumulate(Moments(2))
    with pytest.raises(ValueError, match=r"block 0 holds \d+ rows now, but held \d+ before"):
        rows.accumulate(Moments(2))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_numbers_that_change_are_noticed(kind):
    made = []

    def other():
        made.append(1)
        return counts(seed=len(made)).astype(kind)

    block = dask.delayed(other, pure=False)()
    with pytest.raises(ValueError, match=r"feature .* must give the same rows each time"):
        sparse_pca([block], n_nonzero_coefs=2, memory_limit=1, **QUICK)


def test_names_are_not_looked_at_for_every_block():
    from sparcipal.data.dask import DaskRows

    looked = []

    class Name(str):
        def __getattr__(self, attribute):
            looked.append(attribute)
            raise AttributeError(attribute)

    names = tuple(Name(name) for name in NAMES)
    rows = DaskRows(cuts(counts(), 9), Layout(7, names))
    rows.accumulate(Moments(7))
    rows.gather()
    assert not looked


class Keys(Callback):
    """Names of the tasks that dask's threads run."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _posttask(self, key, *rest):
        self.seen.append(key)


def keys_of(source, **asked):
    with Keys() as keys, dask.config.set(scheduler="synchronous"):
        found = sparse_pca(source, n_nonzero_coefs=2, memory_limit=1000, **asked, **QUICK)
    return set(keys.seen), found


def test_tasks_are_named_by_package_and_pass_and_the_same_each_time():
    X = counts()
    first, _ = keys_of(da.from_array(X, chunks=(20, -1)))
    again, _ = keys_of(da.from_array(X, chunks=(20, -1)))
    assert first == again
    names = {key_split(key) for key in first}
    for stage in ("moments", "products"):
        assert f"sparcipal-{stage}-sum" in names
    other, _ = keys_of(da.from_array(X + 1, chunks=(20, -1)))
    assert not {key for key in first & other if "-sum-" in str(key)}
    weighted, _ = keys_of(da.from_array(X, chunks=(20, -1)), sample_weight=np.arange(1.0, 104.0))
    assert not {key for key in first & weighted if "-products-sum-" in str(key)}


def shared_source(X, count):
    """Blocks that are parts of one thing, which is made once."""
    made = []
    whole = dask.delayed(lambda: made.append(1) or X)()
    parts = np.array_split(np.arange(len(X)), count)
    return [
        dask.delayed(lambda all_rows, some: all_rows[some])(whole, some) for some in parts
    ], made


def test_small_blocks_are_summed_together_in_few_tasks():
    X = counts(400)
    keys, many = keys_of(cuts(X, 2))
    assert len(keys) < 20
    _, few = keys_of(cuts(X, 200))
    assert same_answer(many, few)
    blocks, made = shared_source(X, 200)
    _, shared = keys_of(blocks)
    assert same_answer(shared, few)
    assert len(made) < 8  # once for each pass, not once for each block
    weights = np.random.default_rng(0).uniform(1, 2, 400)
    _, heavy = keys_of(cuts(X, 2), sample_weight=weights)
    _, plain = keys_of(cuts(X, 200), sample_weight=weights)
    assert heavy.value == pytest.approx(plain.value, rel=1e-12)
    blocks = [*cuts(X[:398], 2), dask.delayed(np.full((2, 7), np.nan))]
    with pytest.raises(ValueError, match="block 199 of X: X contains 14 NaN"):
        keys_of(blocks)


def test_groups_of_blocks_are_told_by_their_sizes():
    from sparcipal.data.daskpass import groups_of

    assert groups_of([5, 5, 5, 20, 1, 1], 10) == [range(2), range(2, 3), range(3, 4), range(4, 6)]
    assert groups_of([50], 10) == [range(1)]
    assert groups_of([1] * 1000, 100) == [range(i, i + 100) for i in range(0, 1000, 100)]


# --- threads that share little memory ---


@pytest.fixture
def tight(monkeypatch):
    """A limit that leaves room for three tasks that sum 40 rows of seven features."""
    monkeypatch.setattr(daskpass, "LEAST", 1)
    monkeypatch.setattr(daskpass, "THREAD", 0)
    monkeypatch.setattr(daskpass, "TOGETHER", 1)
    return 3 * (4 * 8 * 7**2 + 2 * 8 * 40 * 7)


def lanes_of(keys):
    return {key for key in keys if "-moments-sum-" in str(key)}


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_in_lanes_are_the_same(kind, few, tight):
    X, weights = counts(), np.random.default_rng(1).uniform(1, 2, 103)
    limit = 1 if few else tight
    with Keys() as keys:
        rows = as_rows(KINDS[kind](X)).within(limit)
        moments = rows.accumulate(Moments(7))
        gram = rows.accumulate(moments.gram([0, 2, 5]))
    assert same(moments, Moments(7).add(X))
    assert np.array_equal(gram.second, X[:, [0, 2, 5]].T @ X[:, [0, 2, 5]])
    merged = [str(key) for key in keys.seen if "sparcipal-" in str(key) and "-merge-" in str(key)]
    assert not few or sorted(name.split("-")[1] for name in merged) == ["moments", "products"]
    assert rows.n_samples == 103
    heavy = as_rows(KINDS[kind](X)).within(limit).weighted(weights).accumulate(Moments(7))
    assert np.allclose(heavy.means(), np.average(X, axis=0, weights=weights), rtol=1e-13)


@pytest.mark.parametrize(
    ("scheduler", "workers"), [("synchronous", 1), ("threads", 1), ("threads", 8)]
)
def test_sums_of_floats_in_lanes_do_not_depend_on_the_scheduler(scheduler, workers, tight):
    X = np.random.default_rng(0).standard_normal((500, 7))
    rows = as_rows(da.from_array(X, chunks=(7, -1))).within(tight)
    with dask.config.set(scheduler="synchronous"):
        reference = rows.accumulate(Moments(7))
        gram = rows.accumulate(reference.gram(np.arange(7)))
    with dask.config.set(scheduler=scheduler, num_workers=workers):
        assert same(rows.accumulate(Moments(7)), reference)
        assert same(rows.accumulate(reference.gram(np.arange(7))), gram)
    assert np.allclose(reference.variances(), X.var(axis=0), rtol=1e-13)


def test_as_many_blocks_are_made_at_once_as_there_is_room_for(tight):
    X, busy, most, lock = counts(400), [0], [0], threading.Lock()

    def made(block):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        with lock:
            busy[0] -= 1
        return block

    def blocks():
        return [dask.delayed(made)(X[i : i + 40]) for i in range(0, 400, 40)]

    expected = Moments(7).add(X)
    for limit, few, many in ((tight, 1, 3), (tight // 3, 1, 1), (sys.maxsize, 2, 8)):
        most[0] = 0
        with dask.config.set(scheduler="threads", num_workers=8):
            assert same(as_rows(blocks()).within(limit).accumulate(Moments(7)), expected)
        assert few <= most[0] <= many, limit


def test_sums_in_lanes_are_not_taken_from_another_run(tight):
    """What a task adds is nowhere else: a key that is known would leave its rows out."""
    source, seen = da.from_array(counts(), chunks=(20, -1)), []
    for _ in range(2):
        with Keys() as keys:
            as_rows(source).within(tight).accumulate(Moments(7))
        seen.append(lanes_of(keys.seen))
    assert len(seen[0]) == len(seen[1]) > 1
    assert not seen[0] & seen[1]


def test_blocks_in_lanes_keep_their_numbers_in_errors(tight):
    blocks = [*cuts(counts(400), 40), dask.delayed(np.full((2, 7), np.nan))]
    with pytest.raises(ValueError, match="block 10 of X: X contains 14 NaN"):
        as_rows(blocks).within(tight).accumulate(Moments(7))
    shared, made = shared_source(counts(400), 20)
    assert same(as_rows(shared).within(tight).accumulate(Moments(7)), Moments(7).add(counts(400)))
    assert len(made) < 4  # two looks at the columns, and the pass


def test_a_pass_in_lanes_can_be_stopped(tight, monkeypatch):
    monkeypatch.setattr(rows_module, "TELL", 0.0)
    heard = []
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(KeyboardInterrupt, match=r"stopped while the rows were read \(\d+"),
    ):
        sparse_pca(
            delays(counts(200), 10, 0.02), n_nonzero_coefs=2, memory_limit=tight,
            callback=stop_at("products", heard), **QUICK,
        )  # fmt: skip
    assert "% of the blocks" in heard[-1][1]


def test_threads_are_those_that_there_is_room_for():
    mb = 1 << 20

    def planned(count, size, sums, limit, dense=False):
        sizes = [daskpass.Size(1, size, size, dense)] * count
        return daskpass.planned(sizes, sums, sums, limit)

    roomy = planned(1000, 10 * mb, 8 * mb, 1 << 30)
    assert (len(roomy.groups), roomy.lanes) == (250, 0)
    assert roomy.threads >= 8
    for dense in (False, True):
        for limit in (50 * mb, 100 * mb, 200 * mb):
            tight = planned(1000, 2 * mb, 8 * mb, limit, dense)
            assert tight.lanes == tight.threads >= 1
            assert (4 if dense else 2) * 8 * mb * tight.lanes <= limit
            assert sum(map(len, tight.groups)) == 1000
    assert planned(3, 100 * mb, mb, 50 * mb).threads == 1  # a block that is too large is read
    assert planned(1, 100, 100, 1).lanes == 0


def test_rows_stay_where_they_are_if_the_covariance_is_smaller(monkeypatch):
    from sparcipal.data import dask as module

    monkeypatch.setattr(module, "SMALL", 100)
    X = counts(400)
    assert as_rows(da.from_array(X, chunks=(100, -1))).gathered(1 << 30) is None
    wide = da.from_array(X.T, chunks=(3, -1))
    assert as_rows(wide).gathered(1 << 30).shape == (7, 400)
    assert as_rows(wide).gathered(1000) is None


def test_sums_take_what_the_smallest_worker_has():
    from types import SimpleNamespace

    from sparcipal.data.daskpass import memory_of_a_thread

    def scheduler(*limits):
        workers = [SimpleNamespace(memory_limit=limit, nthreads=2) for limit in limits]
        return SimpleNamespace(workers=dict(enumerate(workers)))

    assert memory_of_a_thread(scheduler(1000, 600)) == 300
    assert memory_of_a_thread(scheduler(0, 600)) == 300
    assert memory_of_a_thread(scheduler(0)) is None


# --- scores ---


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "empty" not in kind])
def test_scores_are_lazy_and_the_same(kind):
    X = counts()
    model = SparsePCA(2, 2, **QUICK).fit(pd.DataFrame(X, columns=NAMES) if kind == "frame" else X)
    lazy = model.transform(KINDS[kind](X))
    assert isinstance(lazy, da.Array)
    expected = model.transform(sp.csr_array(X) if "sparse" in kind else read(KINDS[kind](X)))
    assert np.array_equal(lazy.compute(), expected)
    model.set_output(transform="pandas")
    framed = model.transform(KINDS[kind](X))
    assert isinstance(framed, dd.DataFrame)
    assert list(framed.columns) == ["sparsepca0", "sparsepca1"]
    assert np.array_equal(framed.compute().to_numpy(), expected)
    model.set_output(transform="polars")
    with pytest.raises(ValueError, match="does not work with lazy data"):
        model.transform(KINDS[kind](X))


def test_dask_scores_of_fit_transform_are_lazy():
    X = counts()
    lazy = SparsePCA(2, 2, **QUICK).fit_transform(da.from_array(X, chunks=(20, -1)))
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), SparsePCA(2, 2, **QUICK).fit(X).transform(X))


def test_the_estimator_knows_names_and_limits():
    X = counts()
    whole = SparsePCA(2, 2, **QUICK).fit(frame(X, 3))
    assert list(whole.feature_names_in_) == NAMES
    passes = SparsePCA(2, 2, memory_limit=1000, **QUICK).fit(frame(X, 3))
    assert list(passes.feature_names_in_) == NAMES
    assert passes.certificate_.screening
    assert np.allclose(passes.components_, whole.components_, rtol=1e-12)
    lazy = passes.transform(frame(X, 3)).compute()
    assert np.allclose(lazy, whole.transform(pd.DataFrame(X, columns=NAMES)), rtol=1e-12)


def test_scores_ask_for_the_used_columns_only():
    X = counts().astype(float)
    model = SparsePCA(1, 2, **QUICK).fit(X)
    used = np.flatnonzero(model.components_[0])
    spoilt = X.copy()
    spoilt[:, np.setdiff1d(np.arange(7), used)] = np.nan
    expected = model.transform(X)
    assert np.array_equal(model.transform(da.from_array(spoilt, chunks=(9, 2))).compute(), expected)
    table = pd.DataFrame(spoilt, columns=NAMES)
    assert np.array_equal(model.transform(dd.from_pandas(table, npartitions=2)).compute(), expected)
    spoilt[5, used[0]] = np.inf
    with pytest.raises(ValueError, match="in columns that components use"):
        model.transform(da.from_array(spoilt, chunks=(9, 2))).compute()


def test_scores_of_memory_maps_and_functions_are_those_of_the_array(tmp_path):
    X = counts().astype(np.float32)
    model = SparsePCA(2, 2, **QUICK).fit(X)
    expected = model.transform(X)
    np.save(tmp_path / "x.npy", X)
    assert np.array_equal(model.transform(np.load(tmp_path / "x.npy", mmap_mode="r")), expected)
    assert np.array_equal(
        model.transform(lambda: (X[i : i + 9] for i in range(0, 103, 9))), expected
    )
    with pytest.raises(ValueError, match="X has 6 features"):
        model.transform(np.load(tmp_path / "x.npy", mmap_mode="r")[:, :6])
    with pytest.raises(ValueError, match="X has 6 features"):
        model.transform(lambda: iter([X[:, :6]]))


def test_estimator_refuses_bad_lazy_input():
    X = counts()
    model = SparsePCA(2, 2, **QUICK).fit(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="X has 6 features"):
        model.transform(da.from_array(X[:, :6], chunks=(9, 2)))
    with pytest.raises(ValueError, match="first at feature 0: 'word6' instead of 'word0'"):
        model.transform(frame(X, 2)[NAMES[::-1]])
    with pytest.raises(ValueError, match="X is lazy, but inverse_transform makes dense rows"):
        model.inverse_transform(model.transform(frame(X, 2)))


# --- a cluster ---


# What an older dask says of threads while there is a cluster.
BESIDE_A_CLIENT = pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; one that is killed comes back. Any port: other tests run beside."""
    config = {"distributed.scheduler.allowed-failures": 10}
    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster, timeout=60) as client,
    ):
        yield client
    with warnings.catch_warnings():
        # Streams to workers that were killed are collected here: in a later test that runs in this
        # process their ResourceWarning would be an error.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def client(cluster):
    """Both workers are there, also after a test that has killed one; and so are those who start
    them again: a worker that dies before they are ready is not replaced, but by another one."""
    for _ in range(4):
        if _both_ready(cluster, seconds=30):
            return cluster
        cluster.cluster.scale(len(cluster.cluster.worker_spec) + 1)
    pytest.fail("no two workers were ready within two minutes")


def _both_ready(client, seconds):
    """Wait for two workers known to the scheduler whose nannies run, and stay so for a moment."""
    end, in_a_row = time.monotonic() + seconds, 0
    while in_a_row < 6 and time.monotonic() < end:
        nannies = client.cluster.workers.values()
        running = sum(nanny.status.name == "running" for nanny in nannies)
        known = len(client.cluster.scheduler.workers)
        in_a_row = in_a_row + 1 if min(running, known) >= 2 else 0
        time.sleep(0.05)
    return in_a_row >= 6


def with_a_death(X, size, folder):
    """Blocks of rows; the one in the middle takes its worker with it."""
    parts = cuts(X, size)
    parts[len(parts) // 2] = dask.delayed(deadly)(parts[len(parts) // 2], str(folder))
    return parts


@pytest.mark.processes
@BESIDE_A_CLIENT
def test_sums_are_the_same_when_a_worker_is_killed_in_the_middle_of_a_pass(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((400, 6))
    with dask.config.set(scheduler="synchronous"):
        reference = as_rows(cuts(X, 10)).accumulate(Moments(6))
    rows = as_rows(with_a_death(X, 10, tmp_path))
    assert same(rows.accumulate(Moments(6)), reference)
    assert (tmp_path / "killed").exists()


@pytest.mark.processes
def test_answers_do_not_depend_on_the_cluster(client):
    X = counts(300)
    question = {"n_components": 2, "n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    assert same_answer(sparse_pca(cuts(X, 20), **question), sparse_pca(X, **question))


def left_behind(dask_scheduler):
    topics = [topic for topic in dask_scheduler._broker._topics if "sparcipal" in str(topic)]
    tasks = [key for key in dask_scheduler.tasks if "sparcipal" in str(key)]
    return topics + tasks


@pytest.mark.processes
def test_a_pass_leaves_nothing_on_the_scheduler_and_takes_futures(client):
    X = counts(300)
    question = {"n_components": 2, "n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    expected = sparse_pca(X, **question)
    told = []
    futures = client.scatter([X[i : i + 2] for i in range(0, 300, 2)])
    assert same_answer(sparse_pca(futures, callback=told.append, **question), expected)
    persisted = client.persist(da.from_array(X, chunks=(2, -1)))
    assert same_answer(sparse_pca(persisted, **question), expected)
    del persisted
    deadline = time.monotonic() + 10
    while client.run_on_scheduler(left_behind) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert client.run_on_scheduler(left_behind) == []


@pytest.mark.processes
def test_the_search_runs_on_workers(client, tmp_path):
    from sparcipal.data.dask import use_workers
    from sparcipal.numerics.threads import ordered_map

    use_workers()
    with joblib.parallel_config("dask"), ordered_map(2, Tripling(str(tmp_path))) as submit:
        assert list(submit(Tripling.triple, range(8))) == [3 * item for item in range(8)]
    assert (tmp_path / "killed").exists()

    X = counts(200, 30)
    question = {"n_components": 2, "n_nonzero_coefs": 4, "certify": False}
    for method, options in (("auto", {"effort": 1}), ("bipartite", {"max_samples": 1000})):
        question |= {"method": method, "method_options": options}
        with joblib.parallel_config("dask"):
            there = sparse_pca(X, **question)
        assert same_answer(there, sparse_pca(X, **question))


@pytest.mark.processes
def test_the_proof_runs_on_workers(client, tmp_path, monkeypatch):
    """Subtrees are searched there, one worker dies, and the proof is the same to the last bit."""
    from sparcipal.bounds.tree import search as exact
    from sparcipal.bounds.tree import subtrees

    monkeypatch.setattr(exact, "ALONE", 0.0)
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    monkeypatch.setattr(subtrees, "SUBTREES", 4)
    monkeypatch.setattr(subtrees, "WORK", 2e7)
    X = np.random.default_rng(0).standard_normal((100, 30))
    question = {"n_nonzero_coefs": 8, "certify": "full"}
    here = sparse_pca(X, **question)
    assert here.certificate.nodes > 5
    monkeypatch.setattr(subtrees, "grow", DeadlyElsewhere(subtrees.grow, str(tmp_path)))
    with joblib.parallel_config("dask"):
        there = sparse_pca(X, **question)
    assert (tmp_path / "killed").exists()
    assert there.to_json() == here.to_json()


# --- stopping, and saying how far it is ---


def slow(block, seconds):
    time.sleep(seconds)
    return block


def delays(X, size, seconds):
    return [dask.delayed(slow)(part, seconds) for part in cuts(X, size)]


STOPS = {
    "threads": lambda X: delays(X, 10, 0.02),
    "rows": lambda X: lambda: (slow(X[i : i + 10], 0.02) for i in range(0, len(X), 10)),
}


def stop_at(stage, heard):
    """A callback that ends the run at the second report of a stage."""

    def callback(progress):
        heard.append((progress.stage, progress.message))
        return sum(name == stage for name, _ in heard) > 1

    return callback


@BESIDE_A_CLIENT
@pytest.mark.parametrize("kind", STOPS)
@pytest.mark.parametrize("stage", ["moments", "products"])
def test_a_pass_can_be_stopped(kind, stage, monkeypatch):
    monkeypatch.setattr(rows_module, "TELL", 0.0)
    question = {"n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    heard = []
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(KeyboardInterrupt, match=r"stopped while the rows were read \(\d+"),
    ):
        sparse_pca(STOPS[kind](counts(200)), callback=stop_at(stage, heard), **question)
    assert heard[-1][0] == stage
    assert "% of the blocks" in heard[-1][1] or "rows" in heard[-1][1]


@BESIDE_A_CLIENT
@pytest.mark.parametrize("kind", STOPS)
def test_a_time_limit_ends_a_pass(kind, monkeypatch):
    monkeypatch.setattr(rows_module, "GRACE", 0.05)
    question = {"n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(TimeoutError, match=r"time_limit ended while .* raise time_limit"),
    ):
        sparse_pca(STOPS[kind](counts(400)), time_limit=0.01, **question)


@pytest.mark.processes
def test_a_pass_on_workers_can_be_stopped(client, monkeypatch):
    monkeypatch.setattr(rows_module, "GRACE", 0.0)
    question = {"n_nonzero_coefs": 2, "memory_limit": 1000, **QUICK}
    heard = []
    with pytest.raises(KeyboardInterrupt, match=r"stopped while the rows were read \(\d+ % of the"):
        sparse_pca(delays(counts(120), 10, 0.15), callback=stop_at("moments", heard), **question)
    with pytest.raises(TimeoutError, match=r"time_limit ended while the rows were read"):
        sparse_pca(delays(counts(120), 10, 0.15), time_limit=0.3, **question)
    # the tasks are gone, and the workers do other things
    assert client.submit(sum, [1, 2]).result(timeout=30) == 3
    messages = []
    sparse_pca(
        delays(counts(60), 10, 0.2), callback=lambda p: messages.append(p.message), **question
    )
    assert any("% of the blocks" in message for message in messages)


def test_a_stop_while_more_features_are_kept_gives_the_answer_so_far(monkeypatch):
    from sparcipal.data import passes as stream

    monkeypatch.setattr(stream, "FIRST", 8)
    monkeypatch.setattr(rows_module, "TELL", 0.0)
    rng = np.random.default_rng(0)
    X = rng.poisson(2 / np.arange(1, 201), size=(300, 200))
    passes = []

    def callback(progress):
        passes.append(progress.stage == "products" and "%" in progress.message)
        return sum(passes) > 4

    def blocks():
        return (X[i : i + 60] for i in range(0, 300, 60))

    result = sparse_pca(
        blocks, n_nonzero_coefs=2, memory_limit=50_000, certify=False, callback=callback
    )
    assert result.status.value == "interrupted"
    assert result.certificate.screening["kept"] == 8
    assert result.bound >= sparse_pca(X, n_nonzero_coefs=2).value
