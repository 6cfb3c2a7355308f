"""Database helpers for the engine and the bundled cloud."""
