"""The VPN of a project: certificates, and configurations of its server and clients."""
