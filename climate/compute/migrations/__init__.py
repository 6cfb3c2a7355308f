"""Migrations of servers between hosts: cold, live, evacuation."""
