ALTER TABLE hosts
    ADD COLUMN stream UUID DEFAULT gen_random_uuid() NOT NULL,
    ADD COLUMN version INTEGER DEFAULT '1' NOT NULL,
    ADD COLUMN pool TEXT DEFAULT 'reservation' NOT NULL,
    ADD COLUMN pool_since TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    ADD COLUMN pool_reason TEXT DEFAULT '' NOT NULL,
    ADD COLUMN pool_token BIGINT DEFAULT '0' NOT NULL,
    ADD COLUMN pool_reservation UUID,
    ADD COLUMN pool_until TIMESTAMP WITH TIME ZONE,
    ADD COLUMN home TEXT DEFAULT 'reservation' NOT NULL,
    ADD COLUMN switched_on BOOLEAN DEFAULT 'true' NOT NULL,
    ADD COLUMN tended_until TIMESTAMP WITH TIME ZONE,
    ADD COLUMN drift TEXT DEFAULT '' NOT NULL,
    ADD COLUMN doubted_since TIMESTAMP WITH TIME ZONE,
    ADD CONSTRAINT ck_hosts_pool_known CHECK (pool IN ('multi-tenant', 'reservation', 'lent', 'recycling', 'cleaning',
        'maintenance', 'failed')),
    ADD CONSTRAINT ck_hosts_home_known CHECK (home IN ('multi-tenant', 'reservation')),
    ADD CONSTRAINT ck_hosts_lent_to_a_reservation CHECK (pool <> 'lent' OR pool_reservation IS NOT NULL),
    ADD CONSTRAINT uq_hosts_stream UNIQUE (stream);

CREATE INDEX ix_hosts_pool ON hosts (pool) WHERE removed_at IS NULL;

CREATE TABLE maintenance_windows (
    id UUID NOT NULL,
    host BIGINT NOT NULL,
    during TSTZRANGE NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_maintenance_windows PRIMARY KEY (id),
    CONSTRAINT ck_maintenance_windows_state_known CHECK (state IN ('planned', 'active', 'done', 'cancelled')),
    CONSTRAINT fk_maintenance_windows_host FOREIGN KEY (host) REFERENCES hosts (id)
);

CREATE INDEX ix_maintenance_windows_host ON maintenance_windows (host);

ALTER TABLE reservations ADD COLUMN missing INTEGER DEFAULT '0' NOT NULL;

UPDATE reservations SET missing = 1 WHERE missing_resources;

ALTER TABLE reservations DROP COLUMN missing_resources;

UPDATE events SET seq = CASE kind WHEN 'start_lease' THEN 20 WHEN 'adjust_lease' THEN 30 WHEN 'before_end_lease' THEN 40
    ELSE 60 END;

ALTER TABLE allocations
    ADD COLUMN window_id UUID,
    ADD COLUMN slots INTEGER DEFAULT '0' NOT NULL,
    ADD COLUMN vcpus BIGINT DEFAULT '0' NOT NULL,
    ADD COLUMN memory_mb BIGINT DEFAULT '0' NOT NULL,
    ADD COLUMN disk_gb BIGINT DEFAULT '0' NOT NULL,
    DROP CONSTRAINT ck_allocations_kind_known,
    ADD CONSTRAINT ck_allocations_kind_known CHECK (kind IN ('lease', 'maintenance', 'cleaning', 'hold')),
    ADD CONSTRAINT ck_allocations_maintenance_has_window CHECK (kind <> 'maintenance' OR window_id IS NOT NULL),
    ADD CONSTRAINT ck_allocations_no_less_than_nothing
        CHECK (slots >= 0 AND vcpus >= 0 AND memory_mb >= 0 AND disk_gb >= 0),
    ADD CONSTRAINT fk_allocations_window_id FOREIGN KEY (window_id) REFERENCES maintenance_windows (id),
    DROP CONSTRAINT one_holder_at_a_time,
    ADD CONSTRAINT one_holder_at_a_time EXCLUDE USING gist (int8range(host, host, '[]') WITH &&, during WITH &&,
        (CASE WHEN slots > 0 THEN int8range(id, id, '[]') ELSE '(,)'::int8range END) WITH &&)
        WHERE (state IN ('held', 'active'));

CREATE INDEX ix_allocations_window_id ON allocations (window_id);

CREATE TABLE host_power (
    host BIGINT NOT NULL,
    driver TEXT NOT NULL,
    settings JSONB NOT NULL,
    secrets TEXT NOT NULL,
    watts INTEGER,
    wanted TEXT,
    wanted_at TIMESTAMP WITH TIME ZONE,
    asked_at TIMESTAMP WITH TIME ZONE,
    state TEXT DEFAULT 'unknown' NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE,
    changed_at TIMESTAMP WITH TIME ZONE,
    used_at TIMESTAMP WITH TIME ZONE,
    failures INTEGER DEFAULT '0' NOT NULL,
    error TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_host_power PRIMARY KEY (host),
    CONSTRAINT ck_host_power_state_known CHECK (state IN ('on', 'off', 'unknown')),
    CONSTRAINT ck_host_power_wanted_known CHECK (wanted IN ('on', 'off')),
    CONSTRAINT fk_host_power_host FOREIGN KEY (host) REFERENCES hosts (id)
);

CREATE TABLE cleanings (
    host BIGINT NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    error TEXT DEFAULT '' NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_cleanings PRIMARY KEY (host),
    CONSTRAINT ck_cleanings_state_known CHECK (state IN ('running', 'done', 'failed')),
    CONSTRAINT fk_cleanings_host FOREIGN KEY (host) REFERENCES hosts (id)
);

CREATE TABLE pool_terms (
    pool TEXT NOT NULL,
    target INTEGER,
    on_end TEXT,
    grace_period INTEGER,
    recycle_deadline TEXT,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_pool_terms PRIMARY KEY (pool),
    CONSTRAINT ck_pool_terms_not_negative CHECK (target >= 0 AND grace_period >= 0)
);

CREATE INDEX ix_leases_project_gone ON leases (project_id, end_date) WHERE gone;

CREATE TABLE limits (
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_limits PRIMARY KEY (project_id, name)
);

CREATE TABLE notices (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    audience TEXT DEFAULT 'people' NOT NULL,
    kind TEXT NOT NULL,
    project_id TEXT,
    user_id TEXT,
    lease_id UUID,
    host BIGINT,
    message TEXT NOT NULL,
    body JSONB NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE,
    attempts INTEGER DEFAULT '0' NOT NULL,
    error TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_notices PRIMARY KEY (id),
    CONSTRAINT ck_notices_audience_known CHECK (audience IN ('people', 'hook', 'enforcement'))
);

CREATE INDEX ix_notices_project ON notices (project_id, id);

CREATE INDEX ix_notices_at ON notices (at);

CREATE INDEX ix_notices_lease_due ON notices (lease_id, id) WHERE next_at IS NOT NULL;

CREATE INDEX ix_notices_due ON notices (next_at) WHERE next_at IS NOT NULL;

INSERT INTO journal (stream, version, kind, body, actor, request_id)
SELECT stream, 1, 'HostEnrolled',
    jsonb_build_object('host', id, 'at', created_at, 'name', hypervisor_hostname, 'pool', 'reservation'),
    '{"user_id": "climate:migrate", "project_id": ""}', ''
FROM hosts ORDER BY id;

UPDATE hosts SET pool_since = created_at;

WITH lent AS (
    SELECT DISTINCT ON (h.id) h.id, h.stream, r.id AS reservation_id, r.lease_id, l.start_date, e.token
    FROM hosts h
    JOIN allocations a ON a.host = h.id AND a.state = 'active'
    JOIN reservations r ON r.id = a.reservation_id AND r.status = 'active'
    JOIN leases l ON l.id = r.lease_id
    JOIN events e ON e.lease_id = l.id AND e.kind = 'start_lease'
    WHERE h.removed_at IS NULL
    ORDER BY h.id, l.start_date),
moved AS (
    UPDATE hosts h SET pool = 'lent', pool_since = lent.start_date, pool_reason = 'lent to lease ' || lent.lease_id,
        pool_token = lent.token, pool_reservation = lent.reservation_id, version = 2
    FROM lent WHERE h.id = lent.id)
INSERT INTO journal (stream, version, kind, body, actor, request_id)
SELECT stream, 2, 'HostMoved',
    jsonb_build_object('at', start_date, 'pool', 'lent', 'reason', 'lent to lease ' || lease_id, 'token', token,
        'reservation_id', reservation_id, 'until', NULL),
    '{"user_id": "climate:migrate", "project_id": ""}', ''
FROM lent;

INSERT INTO journal (stream, version, kind, body, actor, request_id)
SELECT stream, version + 1, 'HostRemoved', jsonb_build_object('at', removed_at),
    '{"user_id": "climate:migrate", "project_id": ""}', ''
FROM hosts WHERE removed_at IS NOT NULL;

UPDATE hosts SET version = version + 1 WHERE removed_at IS NOT NULL;

CREATE TABLE compute_grants (
    pool TEXT NOT NULL,
    project_id TEXT NOT NULL,
    group_id UUID,
    closed BOOLEAN DEFAULT false NOT NULL,
    revoked BOOLEAN DEFAULT false NOT NULL,
    fence BIGINT NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_grants PRIMARY KEY (pool)
);

CREATE TABLE compute_grant_slots (
    pool TEXT NOT NULL,
    node_id INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    CONSTRAINT pk_compute_grant_slots PRIMARY KEY (pool, node_id),
    CONSTRAINT ck_compute_grant_slots_slots_make_sense CHECK (slots > 0),
    CONSTRAINT fk_compute_grant_slots_pool FOREIGN KEY (pool) REFERENCES compute_grants (pool) ON DELETE CASCADE,
    CONSTRAINT fk_compute_grant_slots_node_id FOREIGN KEY (node_id) REFERENCES compute_nodes (id) ON DELETE CASCADE
);

CREATE INDEX ix_compute_grant_slots_node_id ON compute_grant_slots (node_id);

ALTER TABLE compute_servers ADD COLUMN granted TEXT;

CREATE INDEX ix_compute_servers_granted ON compute_servers (granted, node_id) WHERE granted IS NOT NULL;
