ALTER TABLE compute_cell_builds ADD COLUMN cell TEXT;

ALTER TABLE compute_cell_builds ADD COLUMN server_ids JSONB DEFAULT '[]'::jsonb NOT NULL;

CREATE INDEX ix_compute_cell_builds_cell ON compute_cell_builds (cell);
