CREATE TABLE healing_waits (
    lease_id UUID NOT NULL,
    tries INTEGER NOT NULL,
    tried_at TIMESTAMP WITH TIME ZONE NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_healing_waits PRIMARY KEY (lease_id),
    CONSTRAINT fk_healing_waits_lease_id FOREIGN KEY(lease_id) REFERENCES leases (id)
);

CREATE INDEX ix_healing_waits_tried_at ON healing_waits (tried_at);
