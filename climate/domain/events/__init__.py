"""Events of leases: kinds, order and progress."""
