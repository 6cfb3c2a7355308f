"""Servers: create, actions, tasks, state reconciliation."""
