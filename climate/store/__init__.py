"""SQL of the engine. Every function takes a connection; none commits."""
