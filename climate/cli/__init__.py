"""The `climate` command."""
