CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_shared
    ON leases USING gin (sharing jsonb_path_ops) WHERE sharing <> '{}';
