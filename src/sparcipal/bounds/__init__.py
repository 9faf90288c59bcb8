"""Upper bounds that take an optimiser or a tree: pair-split, Ky Fan, branch and bound, cones."""
