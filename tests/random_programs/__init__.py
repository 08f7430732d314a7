"""Random programs of the kernel language against plain Python: `python -m tests.random_programs --programs 10000`."""
