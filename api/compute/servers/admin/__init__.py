"""Routes about servers for administrators and other services."""
