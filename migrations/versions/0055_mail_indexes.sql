CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_notices_dead ON notices (id) WHERE next_at IS NULL AND error <> '';
