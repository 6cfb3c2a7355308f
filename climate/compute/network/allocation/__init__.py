"""Allocation of addresses, direct or over the queue."""
