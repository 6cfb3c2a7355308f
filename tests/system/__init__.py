"""The whole stack, started as a user starts it."""
