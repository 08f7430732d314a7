"""Speed of pyarray next to its peers, measured in one process. Run with `python -m bench`; see README.md."""
