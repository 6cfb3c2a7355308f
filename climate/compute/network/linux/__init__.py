"""Kernel networking of one Linux host: bridges, VLANs, guests' interfaces, and their services."""
