"""Linux processes, network namespaces and tap devices."""
