ALTER TABLE hosts DROP CONSTRAINT ck_hosts_pool_known;

ALTER TABLE hosts ADD CONSTRAINT ck_hosts_pool_known CHECK (pool IN ('multi-tenant', 'reservation', 'lent', 'recycling',
    'draining', 'cleaning', 'maintenance', 'failed'));
