"""The waiting list: leases that stand in line for resources, and the round that gives them some."""
