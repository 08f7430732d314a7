"""Many elements to one: reductions, variances, inner products, positions of extremes."""
