"""PostgreSQL and Valkey as children of `climate up`."""
