"""HTTP client for child zones: sign-in, tokens, deadlines."""
