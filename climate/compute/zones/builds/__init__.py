"""Builds over zones: plans, offers, encrypted blobs, provisioning."""
