"""Pools of hosts in OpenStack: aggregates and moves between them."""
