"""Network service: claims networks and serves them on its host."""
