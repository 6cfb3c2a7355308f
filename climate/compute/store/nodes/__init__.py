"""Rows of nodes and services, and the snapshot for the scheduler."""
