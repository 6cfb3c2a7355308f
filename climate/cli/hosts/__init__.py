"""Commands of hosts, pools, power and maintenance."""
