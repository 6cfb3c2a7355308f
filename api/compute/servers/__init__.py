"""Routes of servers: create, list, act on, move."""
