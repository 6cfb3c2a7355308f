CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_networks_label ON compute_networks (label);
