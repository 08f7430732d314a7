"""What functions of the namespace share: universal functions, their fast path, names that are missing."""
