"""Routes of hosts: inventory, health, properties, maintenance, power."""
