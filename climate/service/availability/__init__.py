"""Search for free times, and offers that can be kept."""
