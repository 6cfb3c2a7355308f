"""The API of zones, over trees of complete zones in one process."""
