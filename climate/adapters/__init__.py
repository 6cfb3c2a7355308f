"""Adapters that join the bundled cloud to the engine, to identity and to the commands."""
