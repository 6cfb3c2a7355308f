ALTER TABLE compute_servers
    ADD COLUMN IF NOT EXISTS guest_password TEXT;

