"""The public functions: one module per chapter of the Array API standard. A function is a table row, or a few
lines that call `kernels/`."""
