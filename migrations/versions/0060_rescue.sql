ALTER TABLE compute_servers
    DROP CONSTRAINT IF EXISTS ck_compute_servers_status,
    ADD CONSTRAINT ck_compute_servers_status CHECK (status IN ('BUILD', 'RESERVED', 'ACTIVE', 'SHUTOFF', 'PAUSED',
        'SUSPENDED', 'SHELVED_OFFLOADED', 'VERIFY_RESIZE', 'RESCUE', 'ERROR')) NOT VALID;

ALTER TABLE compute_servers VALIDATE CONSTRAINT ck_compute_servers_status;

CREATE TABLE IF NOT EXISTS compute_quota_classes (
    name TEXT NOT NULL,
    limits JSONB DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT pk_compute_quota_classes PRIMARY KEY (name)
);

ALTER TABLE compute_quotas
    ALTER COLUMN instances DROP NOT NULL, ALTER COLUMN instances DROP DEFAULT,
    ALTER COLUMN cores DROP NOT NULL, ALTER COLUMN cores DROP DEFAULT,
    ALTER COLUMN ram_mb DROP NOT NULL, ALTER COLUMN ram_mb DROP DEFAULT,
    ALTER COLUMN server_groups DROP NOT NULL, ALTER COLUMN server_groups DROP DEFAULT,
    ALTER COLUMN server_group_members DROP NOT NULL, ALTER COLUMN server_group_members DROP DEFAULT,
    ALTER COLUMN key_pairs DROP NOT NULL, ALTER COLUMN key_pairs DROP DEFAULT,
    ALTER COLUMN fixed_ips DROP NOT NULL, ALTER COLUMN fixed_ips DROP DEFAULT,
    ALTER COLUMN floating_ips DROP NOT NULL, ALTER COLUMN floating_ips DROP DEFAULT;

UPDATE compute_quotas
SET instances = nullif(instances, 50), cores = nullif(cores, 200), ram_mb = nullif(ram_mb, 512000),
    server_groups = nullif(server_groups, 10), server_group_members = nullif(server_group_members, 10),
    key_pairs = nullif(key_pairs, 100), fixed_ips = nullif(fixed_ips, -1), floating_ips = nullif(floating_ips, 10);
