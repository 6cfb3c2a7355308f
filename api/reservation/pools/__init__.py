"""Routes of host pools."""
