ALTER TABLE compute_networks
    ADD COLUMN IF NOT EXISTS by_project BOOLEAN DEFAULT false NOT NULL,
    ADD COLUMN IF NOT EXISTS subnet_name TEXT,
    ADD COLUMN IF NOT EXISTS routed BOOLEAN DEFAULT true NOT NULL,
    ADD COLUMN IF NOT EXISTS ranges JSONB DEFAULT '[]'::jsonb NOT NULL,
    ADD COLUMN IF NOT EXISTS routes JSONB DEFAULT '[]'::jsonb NOT NULL,
    DROP CONSTRAINT IF EXISTS uq_compute_networks_label,
    DROP CONSTRAINT IF EXISTS ck_compute_networks_by_project,
    ADD CONSTRAINT ck_compute_networks_by_project
        CHECK (NOT by_project OR (project_id IS NOT NULL AND vlan IS NOT NULL)) NOT VALID;

ALTER TABLE compute_networks VALIDATE CONSTRAINT ck_compute_networks_by_project;

ALTER TABLE compute_network_outlines
    ADD COLUMN IF NOT EXISTS by_project BOOLEAN DEFAULT false NOT NULL,
    DROP CONSTRAINT IF EXISTS uq_compute_network_outlines_label,
    DROP CONSTRAINT IF EXISTS ck_compute_network_outlines_by_project,
    ADD CONSTRAINT ck_compute_network_outlines_by_project
        CHECK (NOT by_project OR (project_id IS NOT NULL AND vlan IS NOT NULL)) NOT VALID;

ALTER TABLE compute_network_outlines VALIDATE CONSTRAINT ck_compute_network_outlines_by_project;

ALTER TABLE compute_quotas ADD COLUMN IF NOT EXISTS networks INTEGER;
