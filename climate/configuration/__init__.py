"""Settings of single components, read from the settings of the process."""
