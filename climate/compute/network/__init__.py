"""Networks of the bundled cloud."""
