"""From anything that people have to a covariance."""
