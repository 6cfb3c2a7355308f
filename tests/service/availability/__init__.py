"""Tests of the search for free times."""
