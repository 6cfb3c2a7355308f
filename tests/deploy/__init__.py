"""Tests of what is installed beside climate."""
