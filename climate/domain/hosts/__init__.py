"""Rules of hosts: pools, power, recycling, capacity, requirements."""
