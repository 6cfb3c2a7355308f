CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_identity_projects_name_domain_id
    ON identity_projects (name, domain_id) NULLS NOT DISTINCT;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_identity_projects_domain_id ON identity_projects (domain_id);

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_identity_users_name_domain_id
    ON identity_users (name, domain_id) NULLS NOT DISTINCT;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_identity_users_domain_id ON identity_users (domain_id);

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_identity_roles_name_domain_id
    ON identity_roles (lower(name), domain_id) NULLS NOT DISTINCT;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_identity_roles_domain_id ON identity_roles (domain_id);
