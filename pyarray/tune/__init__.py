"""The tuner: which constants a kernel is compiled with."""
