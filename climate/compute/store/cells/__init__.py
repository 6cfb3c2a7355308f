"""Rows of cells, their messages and the servers in them."""
