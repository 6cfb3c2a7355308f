"""Clients of the services of others to which climate sends: HTTP and mail."""
