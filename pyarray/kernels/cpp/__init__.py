"""Kernels of the user's in C++, as CuPy has them."""
