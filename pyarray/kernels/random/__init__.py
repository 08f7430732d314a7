"""Random numbers: the generator, its variates and distributions."""
