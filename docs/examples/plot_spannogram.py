"""
The spannogram: all directions of a rank-2 matrix at once
=========================================================

Every feature is a curve over the angle; at each angle the highest curves are the best support. The
sum of their squares, below, has its maximum at the answer: exact for a matrix of rank two
(Papailiopoulos, Dimakis and Korokythakis 2013).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from sparcipal import sparse_pca

wine = load_wine(as_frame=True).data
R = np.corrcoef(wine.T)
w, Q = np.linalg.eigh(R)
V = Q[:, -2:] * np.sqrt(w[-2:])  # one row per feature
result = sparse_pca(covariance=V @ V.T, n_nonzero_coefs=4)
support = result.supports[0]

# %%
# The direction in which the component lies is its angle.

c = result.weights[0] @ V[support]
angle = np.degrees(np.arctan(c[0] / c[1]))
print("at", round(angle), "degrees:", ", ".join(wine.columns[support]))

# %%
# All curves, and what the best four explain at every angle.

degrees = np.linspace(-90, 90, 1441)
turn = np.deg2rad(degrees)
heights = np.abs(np.column_stack([np.sin(turn), np.cos(turn)]) @ V.T)
explained = np.square(np.sort(heights, axis=1)[:, -4:]).sum(axis=1)

figure, (curves, sums) = plt.subplots(
    2, 1, figsize=(7.2, 5.6), sharex=True, height_ratios=(3, 1.2), layout="constrained"
)
curves.plot(degrees, heights, color="0.7", linewidth=0.7)
for i in support:
    curves.plot(degrees, heights[:, i], linewidth=1.8, label=wine.columns[i])
curves.legend(frameon=False, fontsize="small", ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
curves.set(ylabel="|height| of the curve", xlim=(-90, 90), ylim=(0, None))
sums.plot(degrees, explained, color="black")
sums.plot(angle, result.value, "o", color="C1")
sums.set(xlabel="angle in degrees", ylabel="explained by\nthe best support", ylim=(0, None))
for ax in (curves, sums):
    ax.axvline(angle, color="C1", linestyle="--")
