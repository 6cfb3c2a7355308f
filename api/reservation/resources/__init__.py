"""Routes of resources beside hosts: floating IPs and storage."""
