"""The bundled cloud: placement, pools, servers as processes, and its API."""
