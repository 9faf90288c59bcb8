"""Turns tables, files, frames and rows read in passes into a covariance."""
