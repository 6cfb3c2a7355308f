ALTER TABLE events ADD COLUMN name TEXT DEFAULT '' NOT NULL;

ALTER TABLE events DROP CONSTRAINT uq_events_lease_id_kind;

CREATE UNIQUE INDEX uq_events_lease_id_kind ON events
    (lease_id, kind, (CASE WHEN kind = 'additional' THEN CAST(id AS text) ELSE '' END));
