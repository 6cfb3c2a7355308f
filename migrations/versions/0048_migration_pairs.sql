CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_server_id_created_at_id
    ON compute_migrations (server_id, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_newest
    ON compute_migrations (timezone('UTC', created_at), id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_source_host_dest_host
    ON compute_migrations ((ARRAY[source_host, dest_host]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_status_source_host
    ON compute_migrations ((ARRAY[status, source_host]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_status_dest_host
    ON compute_migrations ((ARRAY[status, dest_host]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_type_source_host
    ON compute_migrations ((ARRAY[type, source_host]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_type_dest_host
    ON compute_migrations ((ARRAY[type, dest_host]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_status_type
    ON compute_migrations ((ARRAY[status, type]), created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_migrations_period
    ON compute_migrations USING gist (tstzrange(created_at, greatest(created_at, updated_at), '[]'));

DROP INDEX CONCURRENTLY IF EXISTS ix_compute_migrations_server_id;

DROP INDEX CONCURRENTLY IF EXISTS ix_compute_migrations_created_at_id;
