"""Matrix products, with a vector and with an epilogue."""
