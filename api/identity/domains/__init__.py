"""Domains, and the groups of users in them."""
