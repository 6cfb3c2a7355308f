"""Routes of flavors, key pairs and quotas of projects."""
