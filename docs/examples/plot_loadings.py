"""
Loadings as bars and as a heat map
==================================

Two components of four measurements each, of 178 wines. Names come from the columns of the frame;
negative weights, of which there are none here, are hatched.
"""

from sklearn.datasets import load_wine

from sparcipal import SparsePCA
from sparcipal.report.plots import HeatmapDisplay, LoadingsDisplay

wine = load_wine(as_frame=True).data
pca = SparsePCA(n_components=2, n_nonzero_coefs=4, scale=True).fit(wine)
print(pca.table())
LoadingsDisplay.from_estimator(pca)

# %%
# The same weights, component by feature. Features that no component uses are left out.

HeatmapDisplay.from_estimator(pca)
print(pca.certificate_.status.sentence)
