"""NumPy's functions beyond the Array API standard."""
