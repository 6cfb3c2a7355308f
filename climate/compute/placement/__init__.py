"""Placement of servers: requests, claims, decisions, server groups."""
