"""Elementwise kernels: ufuncs, casts, and arrays made from numbers."""
