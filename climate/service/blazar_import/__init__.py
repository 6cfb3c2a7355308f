"""Import of the hosts, floating IPs and leases of a Blazar database."""
