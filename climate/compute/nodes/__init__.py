"""Nodes and compute services: reports, nodes file, aggregates, health, maintenance."""
