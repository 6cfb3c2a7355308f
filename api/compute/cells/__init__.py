"""Routes of cells, and server lists over cells."""
