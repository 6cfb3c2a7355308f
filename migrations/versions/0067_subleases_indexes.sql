CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_of_parent
    ON leases ((parent ->> 'lease_id')) WHERE parent IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_leases_owing
    ON leases (id) WHERE parent @> '{"returned": false}';

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_reservations_sublet
    ON reservations (lease_id) WHERE sublets <> '[]';
