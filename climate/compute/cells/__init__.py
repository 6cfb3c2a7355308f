"""Cells: deployments in a tree that talk over each other's message brokers."""
