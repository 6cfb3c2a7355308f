ALTER TABLE compute_floating_addresses
    ADD COLUMN single BOOLEAN DEFAULT false NOT NULL,
    ADD CONSTRAINT ck_compute_floating_addresses_single CHECK (project_id IS NOT NULL OR NOT single);
