CREATE TABLE compute_network_outlines (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    label TEXT NOT NULL,
    manager TEXT,
    interface TEXT,
    vlan INTEGER,
    project_id TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_network_outlines PRIMARY KEY (id),
    CONSTRAINT uq_compute_network_outlines_label UNIQUE (label),
    CONSTRAINT uq_compute_network_outlines_vlan UNIQUE (vlan),
    CONSTRAINT ck_compute_network_outlines_manager CHECK (manager IN ('flat', 'flat_dhcp', 'vlan')),
    CONSTRAINT ck_compute_network_outlines_vlan CHECK (vlan IS NULL OR manager = 'vlan' AND vlan BETWEEN 1 AND 4094),
    CONSTRAINT ck_compute_network_outlines_whose CHECK (project_id IS NULL OR manager = 'vlan')
);
