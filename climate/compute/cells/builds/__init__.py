"""Builds over cells: the choice of a cell, and the request sent to it."""
