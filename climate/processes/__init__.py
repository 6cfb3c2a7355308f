"""Processes that this process starts and that end with it."""
