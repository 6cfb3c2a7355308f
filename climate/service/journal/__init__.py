"""Journal: check, rebuild, archives, audit trail."""
