"""Sorts, selections, binary searches, quantiles and unique elements."""
