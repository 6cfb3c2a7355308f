"""Rows of reserved pools and capacity."""
