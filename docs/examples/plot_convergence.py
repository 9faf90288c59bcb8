"""
Value and bound over time
=========================

``callback`` hears every step of a run; keep the steps, and draw them. The answer is found early,
the rest of the time goes into the proof: the bound comes down until nothing is left in between.
"""

from sklearn.datasets import load_breast_cancer

from sparcipal import sparse_pca
from sparcipal.report.plots import ConvergenceDisplay

X = load_breast_cancer().data
history = []
result = sparse_pca(
    X, n_components=5, n_nonzero_coefs=4, scale=True, certify="full", callback=history.append
)
ConvergenceDisplay.from_history(history)
print(result.status.sentence)
