"""The library's device code, written in the kernel language and launched like any user's kernel."""
