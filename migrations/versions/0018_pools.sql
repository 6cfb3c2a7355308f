ALTER TABLE hosts DROP CONSTRAINT ck_hosts_pool_known;

ALTER TABLE hosts ADD CONSTRAINT ck_hosts_pool_known CHECK (pool IN ('multi-tenant', 'reservation', 'lent', 'recycling',
    'draining', 'cleaning', 'maintenance', 'failed'));

ALTER TABLE pool_terms
    ADD COLUMN horizon INTEGER,
    ADD COLUMN spare INTEGER,
    ADD COLUMN margin INTEGER,
    ADD COLUMN slack INTEGER,
    ADD COLUMN dwell INTEGER,
    ADD COLUMN drain BOOLEAN,
    ADD CONSTRAINT ck_pool_terms_filling_not_negative
        CHECK (horizon >= 0 AND spare >= 0 AND margin >= 0 AND slack >= 0 AND dwell >= 0);

CREATE TABLE lease_pools (
    reservation_id UUID NOT NULL,
    aggregate_id BIGINT NOT NULL,
    CONSTRAINT pk_lease_pools PRIMARY KEY (reservation_id)
);
