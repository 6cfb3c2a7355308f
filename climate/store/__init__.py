"""Where the engine's SQL lives.  Every function takes a connection; none commits."""
