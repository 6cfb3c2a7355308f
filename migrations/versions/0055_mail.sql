ALTER TABLE notices DROP CONSTRAINT IF EXISTS ck_notices_audience_known,
    ADD CONSTRAINT ck_notices_audience_known CHECK (audience IN ('people', 'hook', 'enforcement', 'mail')) NOT VALID;

ALTER TABLE notices VALIDATE CONSTRAINT ck_notices_audience_known;

CREATE TABLE IF NOT EXISTS mail_preferences (
    user_id TEXT NOT NULL,
    topics TEXT[] NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_mail_preferences PRIMARY KEY (user_id)
);

CREATE TABLE IF NOT EXISTS mail_reminders (
    one_row BOOLEAN NOT NULL,
    written_until TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_mail_reminders PRIMARY KEY (one_row),
    CONSTRAINT ck_mail_reminders_one_row CHECK (one_row)
);
