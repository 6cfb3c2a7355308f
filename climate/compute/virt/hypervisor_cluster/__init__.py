"""Cluster of hypervisors as one node: the sum of its members, which places, restarts and moves servers by itself."""
