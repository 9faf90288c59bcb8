"""Components of image data as images: which pixels each part uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem.result import Result
from . import common


class ImagesDisplay:
    """Each component over the mean image, in the shape of the pictures.

    Parameters
    ----------
    result : Result
    shape : (rows, columns)
        Of one picture; rows * columns features in reading order.

    Attributes
    ----------
    axes_ : list of Axes, one per component
    figure_ : Figure
    images_ : list of AxesImage, one per component
    """

    def __init__(self, result: Result, shape: tuple[int, int]) -> None:
        if shape[0] * shape[1] != result.n_features:
            raise ValueError(
                f"shape={shape} has {shape[0] * shape[1]} pixels, but there are "
                f"{result.n_features} features"
            )
        self.result = result
        self.shape = shape

    @classmethod
    def from_result(
        cls, result: Result, shape: tuple[int, int], *, ax: Any = None
    ) -> ImagesDisplay:
        return cls(result, shape).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, ax: Any = None
    ) -> ImagesDisplay:
        return cls(common.result_of(estimator), shape).plot(ax=ax)

    def plot(self, ax: Any = None) -> ImagesDisplay:
        """Draw into new axes, or into those given, one per component."""
        components = self.result.components
        if ax is None:
            self.figure_, self.axes_ = common.grid(len(components), 1.9, 2.1, columns=5)
        else:
            self.figure_, self.axes_ = common.given_axes(ax, len(components))
        self.images_ = []
        largest = float(np.abs(components).max())
        mean = self.result.mean
        for j, (axis, component) in enumerate(zip(self.axes_, components)):
            if mean is not None and np.ptp(mean) > 0:
                axis.imshow(mean.reshape(self.shape), cmap="gray", alpha=0.55)
            weights = np.ma.masked_equal(component.reshape(self.shape), 0.0)
            image = axis.imshow(
                weights, cmap="RdBu", vmin=-largest, vmax=largest, interpolation="nearest"
            )
            axis.set_title(f"component {j + 1}", fontsize="small")
            axis.set_axis_off()
            self.images_.append(image)
        return self
