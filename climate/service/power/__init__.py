"""Power of hosts: settings, state, energy saving."""
