"""Plug-ins for other libraries, each imported when its library is."""
