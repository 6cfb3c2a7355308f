"""Admission of leases: limits of projects and the external approval."""
