"""Settings of single components, derived from the settings of the process."""
