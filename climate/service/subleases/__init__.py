"""Sub-leases: hosts of a lease for another project, for a part of its time."""
