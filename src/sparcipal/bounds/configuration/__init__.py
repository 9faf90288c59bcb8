"""Prices for several components, each proved by branch and bound."""
