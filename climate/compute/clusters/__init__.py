"""Clusters of machines that report as one node."""
