CREATE TABLE round_locks (
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    token BIGINT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_round_locks PRIMARY KEY (name)
);
