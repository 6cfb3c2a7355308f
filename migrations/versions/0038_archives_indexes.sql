CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_gone ON leases (updated_at, id) WHERE gone;
