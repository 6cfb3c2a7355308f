CREATE TABLE compute_zone_builds (
    id UUID NOT NULL,
    reservation_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    request JSONB DEFAULT '{}'::jsonb NOT NULL,
    requested INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    vcpus INTEGER NOT NULL,
    ram_mb INTEGER NOT NULL,
    state TEXT DEFAULT 'queued' NOT NULL,
    report JSONB DEFAULT '{}'::jsonb NOT NULL,
    fault TEXT,
    worker UUID,
    worker_until TIMESTAMP WITH TIME ZONE,
    due_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    rung_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_compute_zone_builds PRIMARY KEY (id),
    CONSTRAINT uq_compute_zone_builds_project_id_reservation_id UNIQUE (project_id, reservation_id),
    CONSTRAINT ck_compute_zone_builds_state CHECK (state IN ('queued', 'running', 'waiting', 'done')),
    CONSTRAINT ck_compute_zone_builds_counts_make_sense CHECK (requested > 0 AND pending BETWEEN 0 AND requested)
);

CREATE INDEX ix_compute_zone_builds_pending ON compute_zone_builds (project_id) WHERE pending > 0;

CREATE INDEX ix_compute_zone_builds_under_way ON compute_zone_builds (due_at) WHERE state <> 'done';

CREATE TABLE compute_zone_build_items (
    build_id UUID NOT NULL,
    launch_index INTEGER NOT NULL,
    zone_id INTEGER,
    state TEXT NOT NULL,
    blob TEXT,
    server_id UUID,
    CONSTRAINT pk_compute_zone_build_items PRIMARY KEY (build_id, launch_index),
    CONSTRAINT ck_compute_zone_build_items_state CHECK (state IN ('sent', 'placed', 'lost')),
    CONSTRAINT ck_compute_zone_build_items_placed_has_a_server CHECK ((state = 'placed') = (server_id IS NOT NULL)),
    CONSTRAINT fk_compute_zone_build_items_build_id FOREIGN KEY(build_id) REFERENCES compute_zone_builds (id) ON DELETE CASCADE
);

CREATE INDEX ix_compute_zone_build_items_server_id ON compute_zone_build_items (server_id);

CREATE TABLE compute_zone_offers (
    item_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    build_id TEXT NOT NULL,
    launch_index INTEGER NOT NULL,
    owner_project TEXT,
    owner_user TEXT,
    vcpus INTEGER NOT NULL,
    ram_mb BIGINT NOT NULL,
    server_id UUID,
    expires_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_zone_offers PRIMARY KEY (item_id),
    CONSTRAINT uq_compute_zone_offers_project_id_build_id_launch_index UNIQUE (project_id, build_id, launch_index)
);

CREATE INDEX ix_compute_zone_offers_expires_at ON compute_zone_offers (expires_at);

CREATE INDEX ix_compute_zone_offers_server_id ON compute_zone_offers (server_id);
