"""Clouds that are lent from."""
