CREATE TABLE leases_set_aside (
    lease_id UUID NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT pk_leases_set_aside PRIMARY KEY (lease_id),
    CONSTRAINT fk_leases_set_aside_lease_id FOREIGN KEY(lease_id) REFERENCES leases (id)
);
