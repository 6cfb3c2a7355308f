"""Actions on a server, each a body with one key: its body, and what it calls."""
