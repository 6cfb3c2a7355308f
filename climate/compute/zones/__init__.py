"""Zones: complete deployments in a tree, which share nothing and speak the public HTTP API to their children."""
