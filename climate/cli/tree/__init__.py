"""Commands of zones and cells."""
