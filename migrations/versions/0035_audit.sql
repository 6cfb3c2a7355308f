ALTER TABLE hosts
    ADD COLUMN pool_cause TEXT DEFAULT '' NOT NULL,
    ADD CONSTRAINT ck_hosts_pool_cause_known
        CHECK (pool_cause IN ('', 'declared_well', 'not_cleaned', 'maintenance_window'));

UPDATE hosts SET pool_cause = CASE
        WHEN pool = 'maintenance' THEN 'maintenance_window'
        WHEN pool_reason = 'declared well' THEN 'declared_well'
        ELSE 'not_cleaned' END
    WHERE pool = 'failed' AND (pool_reason = 'declared well' OR starts_with(pool_reason, 'not cleaned: '))
        OR pool = 'maintenance' AND starts_with(pool_reason, 'worked on: ');
