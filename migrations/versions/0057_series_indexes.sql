CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_series ON leases (series_id) WHERE series_id IS NOT NULL;
