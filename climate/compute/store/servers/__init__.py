"""Rows of servers, their tasks, moves and decisions."""
