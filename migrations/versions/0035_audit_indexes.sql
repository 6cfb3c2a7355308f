CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_journal_audited ON journal (position)
    WHERE kind IN (
        'HostDescribed', 'HostEnrolled', 'HostOpened', 'HostPowerCleared', 'HostPowerSet', 'HostRemoved',
        'LimitsSet', 'ObjectChanged', 'PoolTermsSet', 'WindowChanged', 'WindowClosed', 'WindowPlanned');

CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_journal_audited_author ON journal ((actor ->> 'user_id'), position)
    WHERE kind IN (
        'HostDescribed', 'HostEnrolled', 'HostOpened', 'HostPowerCleared', 'HostPowerSet', 'HostRemoved',
        'LimitsSet', 'ObjectChanged', 'PoolTermsSet', 'WindowChanged', 'WindowClosed', 'WindowPlanned');
