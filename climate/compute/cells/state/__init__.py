"""State of cells: capabilities, capacities and inventory."""
