"""
What else is nearly as good?
============================

Every support whose variance is within three percent of the best one, proved complete: a row each,
the best on top. Orange are features that stand in for a blue one, which is then left out.
"""

from sklearn.datasets import load_breast_cancer

from sparcipal import alternatives, sparse_pca
from sparcipal.report.plots import AlternativesDisplay

X = load_breast_cancer(as_frame=True).data
result = sparse_pca(X, n_nonzero_coefs=5, scale=True)
found = alternatives(result, X, within=0.03, drop=False)
AlternativesDisplay.from_alternatives(found)
print("supports:", found.components[0].count, "the best is unique:", found.components[0].unique)
