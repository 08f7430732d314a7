"""What other libraries are to know of pyarray. Nothing here imports them."""
