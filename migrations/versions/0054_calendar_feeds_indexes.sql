CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_project_end ON leases (project_id, end_date);
