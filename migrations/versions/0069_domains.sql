CREATE TABLE IF NOT EXISTS identity_domains (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    enabled BOOLEAN DEFAULT true NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    extra JSONB DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_identity_domains PRIMARY KEY (id)
);

CREATE UNIQUE INDEX IF NOT EXISTS uq_identity_domains_name ON identity_domains (lower(name));

ALTER TABLE identity_projects
    ADD COLUMN IF NOT EXISTS domain_id TEXT
        CONSTRAINT fk_identity_projects_domain_id REFERENCES identity_domains (id);

ALTER TABLE identity_users
    ADD COLUMN IF NOT EXISTS domain_id TEXT
        CONSTRAINT fk_identity_users_domain_id REFERENCES identity_domains (id);

ALTER TABLE identity_roles
    ADD COLUMN IF NOT EXISTS domain_id TEXT
        CONSTRAINT fk_identity_roles_domain_id REFERENCES identity_domains (id);

CREATE TABLE IF NOT EXISTS identity_groups (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    extra JSONB DEFAULT '{}' NOT NULL,
    domain_id TEXT,
    CONSTRAINT pk_identity_groups PRIMARY KEY (id),
    CONSTRAINT fk_identity_groups_domain_id FOREIGN KEY (domain_id) REFERENCES identity_domains (id)
);

CREATE UNIQUE INDEX IF NOT EXISTS uq_identity_groups_name_domain_id
    ON identity_groups (name, domain_id) NULLS NOT DISTINCT;

CREATE INDEX IF NOT EXISTS ix_identity_groups_domain_id ON identity_groups (domain_id);

CREATE TABLE IF NOT EXISTS identity_group_members (
    group_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    CONSTRAINT pk_identity_group_members PRIMARY KEY (group_id, user_id),
    CONSTRAINT fk_identity_group_members_group_id FOREIGN KEY (group_id)
        REFERENCES identity_groups (id) ON DELETE CASCADE,
    CONSTRAINT fk_identity_group_members_user_id FOREIGN KEY (user_id)
        REFERENCES identity_users (id) ON DELETE CASCADE
);

CREATE INDEX IF NOT EXISTS ix_identity_group_members_user_id ON identity_group_members (user_id);

CREATE TABLE IF NOT EXISTS identity_group_assignments (
    group_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    role TEXT NOT NULL,
    CONSTRAINT pk_identity_group_assignments PRIMARY KEY (group_id, project_id, role),
    CONSTRAINT fk_identity_group_assignments_group_id FOREIGN KEY (group_id)
        REFERENCES identity_groups (id) ON DELETE CASCADE,
    CONSTRAINT fk_identity_group_assignments_project_id FOREIGN KEY (project_id)
        REFERENCES identity_projects (id) ON DELETE CASCADE
);

CREATE INDEX IF NOT EXISTS ix_identity_group_assignments_project_id ON identity_group_assignments (project_id);

CREATE TABLE IF NOT EXISTS identity_role_implications (
    prior TEXT NOT NULL,
    implied TEXT NOT NULL,
    CONSTRAINT pk_identity_role_implications PRIMARY KEY (prior, implied)
);

CREATE INDEX IF NOT EXISTS ix_identity_role_implications_implied ON identity_role_implications (implied);

CREATE TABLE IF NOT EXISTS identity_group_system_roles (
    group_id TEXT NOT NULL,
    role TEXT NOT NULL,
    CONSTRAINT pk_identity_group_system_roles PRIMARY KEY (group_id, role),
    CONSTRAINT fk_identity_group_system_roles_group_id FOREIGN KEY (group_id)
        REFERENCES identity_groups (id) ON DELETE CASCADE
);
