ALTER TABLE compute_servers ADD COLUMN config_drive BOOLEAN DEFAULT false NOT NULL;

UPDATE compute_servers SET config_drive = true WHERE user_data IS NOT NULL;

CREATE TABLE compute_vpn_authorities (
    project_id TEXT NOT NULL,
    certificate TEXT NOT NULL,
    sealed_key TEXT NOT NULL,
    server_certificate TEXT NOT NULL,
    sealed_server_key TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_compute_vpn_authorities PRIMARY KEY (project_id)
);

CREATE TABLE compute_vpn_certificates (
    serial TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_compute_vpn_certificates PRIMARY KEY (serial),
    CONSTRAINT fk_compute_vpn_certificates_project_id FOREIGN KEY (project_id)
        REFERENCES compute_vpn_authorities (project_id) ON DELETE CASCADE
);

CREATE INDEX ix_compute_vpn_certificates_project_id ON compute_vpn_certificates (project_id);
