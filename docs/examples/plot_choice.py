"""
How many components and nonzeros?
=================================

More always explains more of the rows that were fitted. The map shows the variance of rows that were
held out; the frame is the recommendation, and the curves beside it have the noise of shuffled
columns and, in sample, the proved bound.
"""

from sklearn.datasets import load_wine

from sparcipal import choose

wine = load_wine(as_frame=True).data
choice = choose(wine, n_components=[1, 2, 3, 4], n_nonzero_coefs=[2, 3, 4, 6], scale=True, folds=3)
choice.plot()
print("recommended:", "{} components of {} nonzeros".format(*choice.best))
