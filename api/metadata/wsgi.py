"""WSGI entry point of the metadata service: `gunicorn 'api.metadata.wsgi:application()'`."""

from flask import Flask

from api.metadata import create_app
from climate import bootstrap, log_setup
from climate.settings import Settings, environment
from climate.web.thread_pools import BESIDE


def application() -> Flask:
    """Return the application over the stores that the environment names."""
    settings = Settings.from_env(environment())
    log_setup.configure(settings.log_format, settings.log_level)
    size = settings.web_threads + BESIDE
    return create_app(bootstrap.build(settings, application="climate-metadata", pool_size=size).compute)
