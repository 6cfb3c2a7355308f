"""Usage of hosts by leases: the projection of host hours, samples of activity, and reports over both."""
