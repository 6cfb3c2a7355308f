"""Projects, users, roles and tokens: the embedded identity service."""
