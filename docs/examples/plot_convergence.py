"""
Value and bound over time
=========================

``callback`` hears every step of a run; keep the steps, and draw them. The answer is found early,
most of the time goes into the proof.
"""

import numpy as np

from sparcipal import sparse_pca
from sparcipal.report.plots import ConvergenceDisplay

rng = np.random.default_rng(1)
X = rng.standard_normal((150, 40)) @ np.diag(np.linspace(1.5, 1.0, 40))
history = []
result = sparse_pca(X, n_nonzero_coefs=6, callback=history.append)
ConvergenceDisplay.from_history(history)
print(result.status.sentence)
