"""The rules of leases, without a database."""
