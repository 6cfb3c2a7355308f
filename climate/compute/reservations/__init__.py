"""Pools and shared capacity that the cloud keeps for reservations."""
