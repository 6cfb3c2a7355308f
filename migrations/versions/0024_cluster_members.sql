CREATE TABLE compute_cluster_members (
    service_host TEXT NOT NULL,
    name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    driver TEXT NOT NULL,
    machine TEXT NOT NULL,
    vcpus INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    local_gb INTEGER NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_cluster_members PRIMARY KEY (service_host, name)
);

CREATE TABLE compute_member_orders (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    service_host TEXT NOT NULL,
    verb TEXT NOT NULL,
    said JSONB NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    until TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    rung_at TIMESTAMP WITH TIME ZONE,
    begun_at TIMESTAMP WITH TIME ZONE,
    done_at TIMESTAMP WITH TIME ZONE,
    answer JSONB,
    error TEXT,
    CONSTRAINT pk_compute_member_orders PRIMARY KEY (id)
);

CREATE INDEX ix_compute_member_orders_open ON compute_member_orders (asked_at) WHERE begun_at IS NULL;
