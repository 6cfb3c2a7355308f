"""Leases over zones and cells."""
