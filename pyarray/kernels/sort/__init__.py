"""Sorts, selections, searches in sorted arrays, unique elements."""
