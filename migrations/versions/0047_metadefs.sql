CREATE TABLE IF NOT EXISTS compute_metadefs (
    namespace TEXT NOT NULL,
    owner TEXT NOT NULL,
    visibility TEXT NOT NULL,
    protected BOOLEAN DEFAULT false NOT NULL,
    display_name TEXT,
    description TEXT,
    parts JSONB DEFAULT '{}'::jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_metadefs PRIMARY KEY (namespace),
    CONSTRAINT ck_compute_metadefs_visibility CHECK (visibility IN ('public', 'private'))
);
