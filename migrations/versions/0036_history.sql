CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_status_listed ON leases (status, created_at, id) WHERE NOT gone;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_project_status_listed ON leases (project_id, status, created_at, id) WHERE NOT gone;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_name_listed ON leases (name, created_at, id) WHERE NOT gone;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_end ON leases (end_date) WHERE NOT gone;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_project_terminated ON leases (project_id, end_date) WHERE NOT gone AND status = 'TERMINATED';

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_reservations_lacking ON reservations (lease_id) WHERE missing > 0 AND status <> 'deleted';

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_events_listed ON events (due_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_events_open_listed ON events (status, due_at, id) WHERE status <> 'DONE';
