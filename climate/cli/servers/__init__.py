"""Commands of servers and their moves."""
