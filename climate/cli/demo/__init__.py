"""Demonstrations: `climate demo`, and the trees of `climate up --demo`."""
