ALTER TABLE pool_terms ADD COLUMN move_servers BOOLEAN;

ALTER TABLE maintenance_windows ADD COLUMN move_servers BOOLEAN DEFAULT false NOT NULL;
