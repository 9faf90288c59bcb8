"""What questions after the optimum cost, and whether their answers hold."""
