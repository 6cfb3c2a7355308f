"""Sharing: projects and users of a lease, and sub-leases."""
