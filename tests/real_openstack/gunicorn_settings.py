"""Settings of gunicorn for the services: oslo.config reads the arguments of the process, which are gunicorn's."""

import sys


def post_fork(server: object, worker: object) -> None:
    """Remove gunicorn's arguments."""
    sys.argv = sys.argv[:1]
