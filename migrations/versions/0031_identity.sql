ALTER TABLE identity_revocations
    ADD COLUMN owner TEXT,
    ADD COLUMN changed XID8 DEFAULT pg_current_xact_id() NOT NULL;

CREATE INDEX ix_identity_revocations_owner ON identity_revocations (owner);

CREATE INDEX ix_identity_revocations_changed ON identity_revocations (changed);

CREATE INDEX ix_identity_failures_login_at ON identity_failures (login, at);

CREATE INDEX ix_identity_failures_at ON identity_failures (at);
