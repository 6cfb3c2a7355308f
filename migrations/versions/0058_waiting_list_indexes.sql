CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_waiting ON leases (created_at, id) WHERE wait_until IS NOT NULL;
