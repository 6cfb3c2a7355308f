"""Servers as containers of bubblewrap."""
