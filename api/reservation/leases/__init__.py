"""Routes of leases and their events."""
