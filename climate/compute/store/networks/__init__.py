"""Rows of networks, fixed and floating addresses."""
