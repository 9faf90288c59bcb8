"""The plan for several components."""

import numpy as np

from sparcipal.bounds.joint import prove_better, prove_jointly
from sparcipal.bounds.proved import Proved
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.problem import Options, Problem
from sparcipal.problem.result import Bound
from sparcipal.search.methods.auto import run


def test_better_value_after_the_plan_is_proved_by_branching_at_the_same_prices():
    X = np.random.default_rng(5).standard_normal((200, 30)) @ np.diag(np.linspace(2, 1, 30))
    problem = Problem(covariance_of(np.cov(X.T)), (4, 4, 4))
    best = run(problem, Options()).components
    start = Proved(best, (Bound("trace", float(np.trace(problem.covariance.dense()))),))
    proved = prove_jointly(problem, start, Options(), "fast")
    kyfan = [bound for bound in proved.bounds if bound.name == "kyfan"]
    value = proved.value(problem)
    assert proved.lowest <= value * (1 + 1e-6) < min(bound.value for bound in kyfan)
    again = prove_better(problem, Proved(best, tuple(kyfan)), Options(), "fast")
    assert value * (1 - 1e-9) <= again.lowest <= value * (1 + 1e-6)
    assert prove_better(problem, start, Options(), "fast") == start
