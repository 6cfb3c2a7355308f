CREATE TABLE IF NOT EXISTS calendar_feeds (
    id UUID NOT NULL,
    scope TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    secret_hash BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_calendar_feeds PRIMARY KEY (id),
    CONSTRAINT uq_calendar_feeds_secret_hash UNIQUE (secret_hash),
    CONSTRAINT ck_calendar_feeds_scope_known CHECK (scope IN ('user', 'project'))
);

CREATE INDEX IF NOT EXISTS ix_calendar_feeds_owner ON calendar_feeds (user_id, project_id, id);
