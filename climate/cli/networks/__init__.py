"""Commands of networks and floating addresses."""
