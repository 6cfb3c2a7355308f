"""Rows of leases and events, and claims of events."""
