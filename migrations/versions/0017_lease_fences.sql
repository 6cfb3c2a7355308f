CREATE TABLE lease_fences (
    lease_id UUID NOT NULL,
    number INTEGER NOT NULL,
    passed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_lease_fences PRIMARY KEY (lease_id)
);

CREATE INDEX ix_lease_fences_passed_at ON lease_fences (passed_at);
