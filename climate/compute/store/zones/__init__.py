"""Rows of child zones, their builds, offers and routes."""
