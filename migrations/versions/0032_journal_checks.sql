CREATE TABLE journal_checks (
    one_row BOOLEAN NOT NULL,
    after UUID NOT NULL,
    began_at TIMESTAMP WITH TIME ZONE NOT NULL,
    streams BIGINT NOT NULL,
    whole_since TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_journal_checks PRIMARY KEY (one_row),
    CONSTRAINT ck_journal_checks_one_row CHECK (one_row)
);

CREATE TABLE journal_differences (
    stream UUID NOT NULL,
    found_at TIMESTAMP WITH TIME ZONE NOT NULL,
    what TEXT NOT NULL,
    CONSTRAINT pk_journal_differences PRIMARY KEY (stream)
);
