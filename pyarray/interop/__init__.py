"""What other libraries are to know of pyarray. What imports one of them is imported when that one is."""
