CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_allocations_preemptible
    ON allocations USING gist (during) WHERE state IN ('held', 'active') AND preemptible;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_reservations_preempted
    ON reservations (lease_id) WHERE preemptions <> '[]' AND status <> 'deleted';
