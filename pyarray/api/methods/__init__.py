"""Operators, methods and attributes of `ndarray` and of universal functions, installed from tables."""
