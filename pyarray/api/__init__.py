"""The namespace: one file per chapter of the Array API standard, a function is a row or a few lines over
`kernels/`."""
