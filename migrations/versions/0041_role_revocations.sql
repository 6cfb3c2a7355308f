ALTER TABLE identity_revocations
    DROP CONSTRAINT IF EXISTS ck_identity_revocations_kind_known,
    ADD CONSTRAINT ck_identity_revocations_kind_known
        CHECK (kind IN ('token', 'user', 'project', 'credential', 'role')) NOT VALID;

ALTER TABLE identity_revocations VALIDATE CONSTRAINT ck_identity_revocations_kind_known;
