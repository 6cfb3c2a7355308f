"""Servers over cells: commands go down, reports go up."""
