"""Routes of nova-network: networks and floating IPs."""
