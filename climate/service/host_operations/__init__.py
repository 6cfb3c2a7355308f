"""Work on hosts: maintenance, recycling, cleaning, failures, pool moves."""
