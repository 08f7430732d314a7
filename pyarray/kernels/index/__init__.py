"""Gathers and scatters: elements moved by index arrays and masks."""
