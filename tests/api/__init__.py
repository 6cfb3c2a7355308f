"""The face's foundation: what every endpoint does with any request."""
