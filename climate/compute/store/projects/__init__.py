"""Rows of flavors, images, key pairs, quotas and volumes."""
