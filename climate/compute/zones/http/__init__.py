"""HTTP to child zones: sign-in, tokens, deadlines."""
