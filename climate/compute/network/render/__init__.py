"""Configuration files of network programs: pure functions, used by the Linux driver and the recording driver."""
