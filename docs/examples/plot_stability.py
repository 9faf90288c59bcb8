"""
Would other samples give the same?
==================================

The same question, asked of halves of the rows: how often does each feature come back? The black
lines are intervals, and features that are not in the answer are hatched.
"""

from sklearn.datasets import load_wine

from sparcipal import stability

wine = load_wine(as_frame=True).data
found = stability(
    wine, n_components=2, n_nonzero_coefs=3, scale=True, n_resamples=20, certify=False
)
found.plot()
print("features that always come back:", int((found.frequencies.max(axis=0) == 1.0).sum()))
