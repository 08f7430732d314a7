"""Gathers and scatters: advanced indexing by index arrays and masks."""
