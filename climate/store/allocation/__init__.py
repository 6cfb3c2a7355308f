"""Allocation of hosts, capacity, addresses and inventories for a period."""
