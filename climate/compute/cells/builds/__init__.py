"""Builds over cells: the choice of a cell, and the request that is sent to it."""
