"""climate: leases over the hosts and servers of a cloud, promised, kept on time and taken back."""
