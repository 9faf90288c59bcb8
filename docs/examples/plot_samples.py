"""
Samples, and the features that place them
=========================================

178 wines on two components of three measurements each. The components know nothing of the three
cultivars; the colours show that they find them.
"""

from sklearn.datasets import load_wine

from sparcipal import SparsePCA
from sparcipal.report.plots import BiplotDisplay, CorrelationsDisplay, ScoresDisplay

wine = load_wine(as_frame=True)
cultivar = [f"cultivar {i + 1}" for i in wine.target]
pca = SparsePCA(n_components=2, n_nonzero_coefs=3, scale=True).fit(wine.data)
ScoresDisplay.from_estimator(pca, wine.data, labels=cultivar)
print(f"{pca.explained_variance_ratio_.sum():.1%} of the variance, by six of thirteen measurements")

# %%
# A biplot: the same samples, and the measurements as arrows. An arrow points to the wines that have
# much of it; near the circle, the two components tell nearly all about it.

BiplotDisplay.from_estimator(pca, wine.data, labels=cultivar)

# %%
# Components with different features may still say the same. Of four, none do: beyond a dotted line
# two of them would.

four = SparsePCA(n_components=4, n_nonzero_coefs=3, scale=True).fit(wine.data)
CorrelationsDisplay.from_estimator(four, wine.data)
print(four.certificate_.status.sentence)
