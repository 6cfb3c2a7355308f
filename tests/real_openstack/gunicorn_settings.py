"""Settings of gunicorn for the services: oslo.config reads the arguments of the process, which are gunicorn's."""

import sys

keepalive = 600  # seconds: a client would send its next request on a connection that is being closed


def post_fork(server: object, worker: object) -> None:
    """Remove gunicorn's arguments."""
    sys.argv = sys.argv[:1]
