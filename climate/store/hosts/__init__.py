"""Rows of hosts, pools, power, cleaning and maintenance."""
