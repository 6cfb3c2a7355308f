CREATE OR REPLACE FUNCTION host_is_free(number BIGINT, wanted TSTZRANGE) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT AS
'BEGIN
    RETURN NOT EXISTS (
        SELECT FROM allocations
        WHERE int8range(host, host, ''[]'') && int8range(number, number, ''[]'') AND during && wanted
            AND state IN (''held'', ''active''));
END';
