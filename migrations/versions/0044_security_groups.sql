CREATE TABLE IF NOT EXISTS compute_security_groups (
    id UUID NOT NULL,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_security_groups PRIMARY KEY (id)
);

CREATE INDEX IF NOT EXISTS ix_compute_security_groups_project_id ON compute_security_groups (project_id);

CREATE UNIQUE INDEX IF NOT EXISTS uq_compute_security_groups_default ON compute_security_groups (project_id)
    WHERE name = 'default';

CREATE TABLE IF NOT EXISTS compute_security_group_rules (
    id UUID NOT NULL,
    group_id UUID NOT NULL,
    direction TEXT NOT NULL,
    version INTEGER NOT NULL,
    protocol TEXT,
    first INTEGER,
    last INTEGER,
    remote_cidr CIDR,
    remote_group_id UUID,
    description TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_security_group_rules PRIMARY KEY (id),
    CONSTRAINT fk_compute_security_group_rules_group_id FOREIGN KEY (group_id)
        REFERENCES compute_security_groups (id) ON DELETE CASCADE,
    CONSTRAINT fk_compute_security_group_rules_remote_group_id FOREIGN KEY (remote_group_id)
        REFERENCES compute_security_groups (id) ON DELETE CASCADE,
    CONSTRAINT ck_compute_security_group_rules_direction CHECK (direction IN ('ingress', 'egress')),
    CONSTRAINT ck_compute_security_group_rules_version CHECK (version IN (4, 6)),
    CONSTRAINT ck_compute_security_group_rules_remote CHECK (remote_cidr IS NULL OR remote_group_id IS NULL)
);

CREATE INDEX IF NOT EXISTS ix_compute_security_group_rules_group_id ON compute_security_group_rules (group_id);

CREATE INDEX IF NOT EXISTS ix_compute_security_group_rules_remote_group_id
    ON compute_security_group_rules (remote_group_id);

ALTER TABLE compute_servers ADD COLUMN IF NOT EXISTS security_groups UUID[];
