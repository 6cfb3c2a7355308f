"""Processes: poller, workers and cells."""
