ALTER TABLE identity_projects DROP CONSTRAINT IF EXISTS uq_identity_projects_name;

ALTER TABLE identity_users DROP CONSTRAINT IF EXISTS uq_identity_users_name;

DROP INDEX CONCURRENTLY IF EXISTS uq_identity_roles_name;
