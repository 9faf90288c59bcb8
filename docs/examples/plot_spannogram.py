"""
The spannogram: all directions of a rank-2 matrix at once
=========================================================

Every feature is a curve over the angle; at each angle the highest curves are the best support. The
sum of their squares, below, has its maximum at the answer: exact for a matrix of rank two.
"""

import numpy as np
from sklearn.datasets import load_wine

from sparcipal.report.plots import SpannogramDisplay

wine = load_wine(as_frame=True).data
R = np.corrcoef(wine.T)
w, Q = np.linalg.eigh(R)
V = Q[:, -2:] * np.sqrt(w[-2:])
display = SpannogramDisplay.from_factor(V, 4, feature_names=list(wine.columns))
print("at", round(display.angle_), "degrees:", ", ".join(wine.columns[display.support_]))
