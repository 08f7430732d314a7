"""Reductions, variances, inner products, argmin and argmax."""
