"""Branch and bound for one component."""
