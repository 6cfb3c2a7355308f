"""Messages between cells: signed, stored, routed and delivered at least once."""
