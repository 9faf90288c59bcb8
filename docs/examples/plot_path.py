"""
How many nonzeros? The path and its certified region
====================================================

The variance against the number of nonzeros. The optimum lies between the line and the bound; here
both coincide, because every point is proved.
"""

from sklearn.datasets import load_wine

from sparcipal import sparse_path
from sparcipal.report.plots import PathDisplay

wine = load_wine(as_frame=True).data
path = sparse_path(wine, n_nonzero_coefs=range(1, 14), scale=True)
for result in path:
    print(len(result.names(0)), f"{result.value:.3f}", result.status.value)
PathDisplay.from_results(path)

# %%
# With less work for the proof the region opens: cheap bounds only.

loose = sparse_path(wine, n_nonzero_coefs=range(1, 14), scale=True, certify=False)
display = PathDisplay.from_results(loose)
widest = max(result.gap for result in loose)
print("the widest gap is", "below" if widest < 0.5 else "above", "50 %")
