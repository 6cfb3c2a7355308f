"""Quotas and flavors of projects."""
