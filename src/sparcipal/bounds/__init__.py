"""Upper bounds: one file or folder each, and the strategy that chooses among them."""
