"""Cells: deployments in a tree that exchange messages over their brokers."""
