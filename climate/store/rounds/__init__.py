"""Rounds: locks of periodic tasks and their work."""
