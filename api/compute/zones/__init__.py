"""Routes of child zones, build plans and requests that are forwarded to a zone."""
