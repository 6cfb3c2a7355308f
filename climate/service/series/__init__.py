"""Series of leases: one request for an occurrence at each date of a recurrence rule."""
