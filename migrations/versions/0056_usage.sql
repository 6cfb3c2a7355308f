CREATE TABLE IF NOT EXISTS lease_usage (
    lease_id UUID NOT NULL,
    reservation_id UUID NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    host BIGINT NOT NULL,
    slots INTEGER DEFAULT 0 NOT NULL,
    during TSTZRANGE NOT NULL,
    CONSTRAINT ck_lease_usage_during_is_not_empty CHECK (NOT isempty(during))
);

CREATE INDEX IF NOT EXISTS ix_lease_usage_lease_id ON lease_usage (lease_id);

CREATE INDEX IF NOT EXISTS ix_lease_usage_during ON lease_usage USING gist (during);

CREATE TABLE IF NOT EXISTS host_activity (
    host BIGINT NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_host_activity PRIMARY KEY (host, starts_at),
    CONSTRAINT ck_host_activity_ends_after_start CHECK (starts_at < ends_at)
);

CREATE INDEX IF NOT EXISTS ix_host_activity_ends ON host_activity (ends_at);

CREATE TABLE IF NOT EXISTS usage_progress (
    only_row BOOLEAN DEFAULT true NOT NULL,
    position BIGINT DEFAULT '0' NOT NULL,
    sampled_at TIMESTAMP WITH TIME ZONE,
    measured_since TIMESTAMP WITH TIME ZONE,
    watched_since TIMESTAMP WITH TIME ZONE,
    next_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_usage_progress PRIMARY KEY (only_row),
    CONSTRAINT ck_usage_progress_one_row CHECK (only_row)
);

INSERT INTO usage_progress DEFAULT VALUES ON CONFLICT DO NOTHING;

ALTER TABLE pool_terms ADD COLUMN IF NOT EXISTS idle TEXT;

CREATE TABLE IF NOT EXISTS idle_leases (
    lease_id UUID NOT NULL,
    notices SMALLINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_idle_leases PRIMARY KEY (lease_id)
);
