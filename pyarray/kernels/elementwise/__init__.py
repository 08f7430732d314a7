"""One output element from the elements at the same place."""
