"""A real OpenStack on this machine: Keystone, Placement, Glance, Neutron and Nova, and tests over it."""
