"""Inventory of hosts, and reconciliation of pools with the cloud."""
