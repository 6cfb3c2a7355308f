"""Journal rows: facts, projections, archives, audit trail."""
