"""Usage of hosts by leases: the round that computes it, and reports."""
