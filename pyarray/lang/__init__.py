"""The kernel language, from Python functions to C text. Knows neither devices nor arrays."""
