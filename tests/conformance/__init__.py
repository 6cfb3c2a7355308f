"""One suite per protocol of the cloud interface, run on every implementation."""
