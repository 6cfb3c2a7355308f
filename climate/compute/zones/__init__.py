"""Zones: complete deployments in a tree, which share nothing and call their children's public HTTP API."""
