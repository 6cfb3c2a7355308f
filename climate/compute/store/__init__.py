"""The bundled cloud's SQL: takes a connection, never commits."""
