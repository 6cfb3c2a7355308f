ALTER TABLE compute_vifs
    ADD COLUMN IF NOT EXISTS project_id TEXT,
    ADD COLUMN IF NOT EXISTS outline_id UUID,
    ADD COLUMN IF NOT EXISTS left_server_id UUID,
    ADD COLUMN IF NOT EXISTS name TEXT DEFAULT '' NOT NULL,
    ADD COLUMN IF NOT EXISTS description TEXT DEFAULT '' NOT NULL,
    ADD COLUMN IF NOT EXISTS admin_up BOOLEAN DEFAULT true NOT NULL,
    ADD COLUMN IF NOT EXISTS security_groups UUID[],
    ADD COLUMN IF NOT EXISTS device_id TEXT DEFAULT '' NOT NULL,
    ADD COLUMN IF NOT EXISTS device_owner TEXT DEFAULT '' NOT NULL,
    ADD COLUMN IF NOT EXISTS named_host TEXT DEFAULT '' NOT NULL,
    ADD COLUMN IF NOT EXISTS created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    ADD COLUMN IF NOT EXISTS changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL;

ALTER TABLE compute_vifs
    ALTER COLUMN created_at SET DEFAULT clock_timestamp(), ALTER COLUMN changed_at SET DEFAULT clock_timestamp(),
    ALTER COLUMN network_id DROP NOT NULL, ALTER COLUMN server_id DROP NOT NULL, ALTER COLUMN place DROP NOT NULL,
    DROP CONSTRAINT IF EXISTS uq_compute_vifs_server_id_network_id;

ALTER TABLE compute_vifs
    DROP CONSTRAINT IF EXISTS ck_compute_vifs_place,
    ADD CONSTRAINT ck_compute_vifs_place CHECK ((server_id IS NULL) = (place IS NULL)) NOT VALID,
    DROP CONSTRAINT IF EXISTS ck_compute_vifs_whose,
    ADD CONSTRAINT ck_compute_vifs_whose CHECK (server_id IS NOT NULL OR project_id IS NOT NULL) NOT VALID,
    DROP CONSTRAINT IF EXISTS ck_compute_vifs_network,
    ADD CONSTRAINT ck_compute_vifs_network CHECK ((network_id IS NULL) <> (outline_id IS NULL)) NOT VALID,
    DROP CONSTRAINT IF EXISTS ck_compute_vifs_outline,
    ADD CONSTRAINT ck_compute_vifs_outline CHECK (outline_id IS NULL OR server_id IS NULL) NOT VALID,
    DROP CONSTRAINT IF EXISTS fk_compute_vifs_outline_id,
    ADD CONSTRAINT fk_compute_vifs_outline_id FOREIGN KEY (outline_id) REFERENCES compute_network_outlines (id)
        DEFERRABLE INITIALLY DEFERRED NOT VALID;

ALTER TABLE compute_vifs
    VALIDATE CONSTRAINT ck_compute_vifs_place,
    VALIDATE CONSTRAINT ck_compute_vifs_whose,
    VALIDATE CONSTRAINT ck_compute_vifs_network,
    VALIDATE CONSTRAINT ck_compute_vifs_outline,
    VALIDATE CONSTRAINT fk_compute_vifs_outline_id;

ALTER TABLE compute_quotas ADD COLUMN IF NOT EXISTS ports INTEGER;
