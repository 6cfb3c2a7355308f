CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_status_created_at_id
    ON compute_migrations (status, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_type_created_at_id
    ON compute_migrations (type, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_source_host_created_at_id
    ON compute_migrations (source_host, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_dest_host_created_at_id
    ON compute_migrations (dest_host, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_updated_at ON compute_migrations (updated_at);
