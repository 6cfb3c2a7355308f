"""The distributed scheduler: host filters, cost functions, least cost."""
