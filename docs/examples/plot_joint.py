"""
Together or one after the other
===============================

Four groups of features share a little with each other. Found one at a time, the first component
takes features that later ones would have needed; chosen together, the components explain more. The
short line on the right is what no four components of this kind can exceed.
"""

import numpy as np

from sparcipal import sparse_pca
from sparcipal.report.plots import VarianceDisplay

rng = np.random.default_rng(4)
groups = np.repeat(np.arange(4), 6)
factors = rng.standard_normal((300, 4)) @ (np.eye(4) + 0.6)
X = factors[:, groups] * rng.uniform(0.6, 1.4, size=24) + 0.7 * rng.standard_normal((300, 24))
question = {"n_components": 4, "n_nonzero_coefs": 5}
joint = sparse_pca(X, **question)
single = sparse_pca(X, **question, method="tpower", certify=False)
print(f"together {joint.value:.2f}, one after the other {single.value:.2f}")
VarianceDisplay.from_result(joint, single)
