CREATE TABLE IF NOT EXISTS lease_series (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    rule TEXT NOT NULL,
    zone TEXT NOT NULL,
    start_date TIMESTAMP WITH TIME ZONE NOT NULL,
    end_date TIMESTAMP WITH TIME ZONE NOT NULL,
    make TEXT NOT NULL,
    skipped JSONB NOT NULL,
    gone BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_lease_series PRIMARY KEY (id),
    CONSTRAINT ck_lease_series_ends_after_start CHECK (start_date < end_date)
);

CREATE INDEX IF NOT EXISTS ix_lease_series_listed ON lease_series (project_id, created_at, id) WHERE NOT gone;

ALTER TABLE leases ADD COLUMN IF NOT EXISTS series_id UUID;
