"""Tests of the virt drivers, all by one suite and each by what is its own."""
