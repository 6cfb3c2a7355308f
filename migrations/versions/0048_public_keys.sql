ALTER TABLE compute_servers ADD COLUMN IF NOT EXISTS public_key text;
