CREATE TABLE IF NOT EXISTS identity_roles (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_identity_roles PRIMARY KEY (id)
);

CREATE UNIQUE INDEX IF NOT EXISTS uq_identity_roles_name ON identity_roles (lower(name));

CREATE TABLE IF NOT EXISTS identity_system_roles (
    user_id TEXT NOT NULL,
    role TEXT NOT NULL,
    CONSTRAINT pk_identity_system_roles PRIMARY KEY (user_id, role),
    CONSTRAINT fk_identity_system_roles_user_id FOREIGN KEY (user_id)
        REFERENCES identity_users (id) ON DELETE CASCADE
);

ALTER TABLE identity_role_assignments DROP CONSTRAINT IF EXISTS ck_identity_role_assignments_role_known;

ALTER TABLE identity_users ADD COLUMN IF NOT EXISTS extra JSONB DEFAULT '{}' NOT NULL;

ALTER TABLE identity_projects
    ADD COLUMN IF NOT EXISTS parent_id TEXT
        CONSTRAINT fk_identity_projects_parent_id REFERENCES identity_projects (id),
    ADD COLUMN IF NOT EXISTS tags TEXT[] DEFAULT '{}' NOT NULL,
    ADD COLUMN IF NOT EXISTS extra JSONB DEFAULT '{}' NOT NULL;

CREATE INDEX IF NOT EXISTS ix_identity_projects_parent_id ON identity_projects (parent_id);
