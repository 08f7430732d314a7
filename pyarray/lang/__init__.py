"""The kernel language: text in, text out. No device and no array is known here."""
