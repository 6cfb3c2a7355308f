CREATE TABLE compute_image_ids (
    id UUID NOT NULL,
    CONSTRAINT pk_compute_image_ids PRIMARY KEY (id)
);

INSERT INTO compute_image_ids (id)
    SELECT id FROM compute_images
    UNION SELECT image_id FROM compute_servers WHERE image_id IS NOT NULL;

UPDATE compute_images SET status = 'saving'
    WHERE status = 'queued' AND id IN (SELECT task_image FROM compute_servers);

CREATE INDEX ix_compute_grants_group_id ON compute_grants (group_id) WHERE group_id IS NOT NULL;
