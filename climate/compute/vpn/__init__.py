"""The VPN of a project: who is let in, and what its server and its clients are configured with."""
