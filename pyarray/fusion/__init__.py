"""`pa.fuse` and `pa.gemm`: functions of array expressions, traced once, as few kernels."""
