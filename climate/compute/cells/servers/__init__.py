"""Servers over cells: commands on the way down, reports on the way up."""
