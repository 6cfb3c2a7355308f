ALTER TABLE events ADD COLUMN project_id TEXT DEFAULT '' NOT NULL;

UPDATE events SET project_id = leases.project_id FROM leases WHERE leases.id = events.lease_id;

DROP INDEX ix_events_undone;

CREATE INDEX ix_events_undone ON events (run_at, id) WHERE status = 'UNDONE';

CREATE INDEX ix_events_undone_ends ON events (project_id, run_at) WHERE status = 'UNDONE' AND kind IN ('end_lease', 'expire_hold');

CREATE INDEX ix_events_undone_others ON events (project_id, run_at) WHERE status = 'UNDONE' AND NOT (kind IN ('end_lease', 'expire_hold'));
