"""SQL of identity. Every function takes a connection; none commits."""
