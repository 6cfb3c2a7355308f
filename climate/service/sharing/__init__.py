"""Sharing of leases with further projects and users."""
