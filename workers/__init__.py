"""The processes: what rings, what ticks, what works."""
