"""The question and the answer: covariance, components, result."""
