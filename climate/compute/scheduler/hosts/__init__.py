"""Nodes as the scheduler sees them: columns, snapshot, attributes."""
