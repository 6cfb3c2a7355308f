"""Power drivers, each against a machine that is seen from outside."""
