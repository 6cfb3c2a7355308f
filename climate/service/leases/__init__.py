"""Leases: create, update, events, healing."""
