CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_vifs_project_id ON compute_vifs (project_id)
    WHERE project_id IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_compute_vifs_outline_id ON compute_vifs (outline_id)
    WHERE outline_id IS NOT NULL;
