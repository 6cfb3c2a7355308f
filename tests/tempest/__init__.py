"""Tempest, OpenStack's own test suite, and its plugin of Blazar against a running climate."""
