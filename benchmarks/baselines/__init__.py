"""The methods of the literature against each other."""
