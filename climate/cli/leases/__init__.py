"""Commands of leases, reservations and limits."""
