"""SQL of the bundled cloud. Functions take a connection and never commit."""
