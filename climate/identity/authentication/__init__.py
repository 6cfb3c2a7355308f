"""Authentication: passwords, tokens, sign-in and sign-out."""
