"""Rows of servers, their tasks, migrations and decisions."""
