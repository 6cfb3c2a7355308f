ALTER TABLE compute_servers ADD COLUMN IF NOT EXISTS disk_config TEXT DEFAULT 'MANUAL' NOT NULL;

CREATE TABLE IF NOT EXISTS compute_server_usage (
    server_id UUID NOT NULL,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    flavor TEXT NOT NULL,
    vcpus INTEGER NOT NULL,
    ram_mb INTEGER NOT NULL,
    disk_mb BIGINT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_server_usage PRIMARY KEY (server_id)
);

CREATE INDEX IF NOT EXISTS ix_compute_server_usage_project_id_ended_at ON compute_server_usage (project_id, ended_at);

CREATE INDEX IF NOT EXISTS ix_compute_server_usage_ended_at ON compute_server_usage (ended_at);
