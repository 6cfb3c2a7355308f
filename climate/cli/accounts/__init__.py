"""Commands for projects, users, roles and application credentials, and for the recovery of access."""
