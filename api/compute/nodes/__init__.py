"""Routes of hosts, hypervisors, services, aggregates and availability zones."""
