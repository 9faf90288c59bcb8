"""
Parts of pictures
=================

Nonnegative sparse components of pictures are parts: pixels that light up together. With the CBCL
faces (``cbcl_faces_raw.npz`` in the folder named by ``SPARCIPAL_DATA``) they are eyes, noses and
cheeks; the handwritten digits of scikit-learn need no download and are used when the faces are not
there.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sparcipal import SparsePCA

faces = Path(os.environ.get("SPARCIPAL_DATA", "")) / "cbcl_faces_raw.npz"
if faces.is_file():
    X = np.load(faces)["train"].astype(float).reshape(-1, 361) / 255
    shape, nonzeros = (19, 19), 25
else:
    X = load_digits().data
    shape, nonzeros = (8, 8), 6
pca = SparsePCA(n_components=5, n_nonzero_coefs=nonzeros, nonnegative=True).fit(X)
pixels = int((pca.components_ > 0).sum())
print(f"{X.shape[0]} pictures of {X.shape[1]} pixels; {pixels} of them explain", end=" ")
print(f"{pca.explained_variance_ratio_.sum():.1%} of the variance")

# %%
# Each component over the mean picture.

figure, axes = plt.subplots(1, 5, figsize=(9.5, 2.1), layout="constrained")
for number, (ax, component) in enumerate(zip(axes, pca.components_), start=1):
    ax.imshow(pca.mean_.reshape(shape), cmap="gray", alpha=0.55)
    weights = np.ma.masked_equal(component.reshape(shape), 0.0)
    ax.imshow(weights, cmap="Blues", vmin=0.0, vmax=pca.components_.max())
    ax.set_title(f"component {number}", fontsize="small")
    ax.set_axis_off()

# %%
# How good is it? No other five parts of that size explain more than a little more.

print("gap below 2 %:", bool(pca.certificate_.gap < 0.02))
