CREATE TABLE IF NOT EXISTS compute_image_members (
    image_id UUID NOT NULL,
    project_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_image_members PRIMARY KEY (image_id, project_id),
    CONSTRAINT fk_compute_image_members_image_id FOREIGN KEY (image_id)
        REFERENCES compute_images (id) ON DELETE CASCADE,
    CONSTRAINT ck_compute_image_members_status CHECK (status IN ('pending', 'accepted', 'rejected'))
);

CREATE INDEX IF NOT EXISTS ix_compute_image_members_project_id ON compute_image_members (project_id);

ALTER TABLE compute_images DROP CONSTRAINT IF EXISTS ck_compute_images_status,
    ADD CONSTRAINT ck_compute_images_status
        CHECK (status IN ('queued', 'saving', 'uploading', 'active', 'deactivated', 'killed')) NOT VALID;

ALTER TABLE compute_images VALIDATE CONSTRAINT ck_compute_images_status;
