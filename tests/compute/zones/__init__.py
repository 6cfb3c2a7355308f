"""Tests of zones."""
