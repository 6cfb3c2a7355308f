"""Tests of the VPN of a project."""
