CREATE INDEX ix_compute_servers_user_id ON compute_servers (user_id);
