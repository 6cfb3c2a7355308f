"""WSGI entry point: `gunicorn 'api.wsgi:application()'`."""

import os

from flask import Flask

from api import create_app
from climate import bootstrap, log_setup
from climate.settings import Settings
from climate.web import LAST_REVOCATION
from climate.web.thread_pools import BESIDE


def application() -> Flask:
    """Return the application over the stores that the environment names; each web process creates its own."""
    settings = Settings.from_env(os.environ)
    log_setup.configure(settings.log_format, settings.log_level)
    size = settings.web_threads + BESIDE
    return create_app(
        bootstrap.build(settings, application="climate-web", pool_size=size, last_revocation=LAST_REVOCATION)
    )
