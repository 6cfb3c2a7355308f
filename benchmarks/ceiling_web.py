"""The ceiling of requests: one INSERT and its commit for each, through the same Flask, gunicorn and Postgres."""

import json
import os

from flask import Flask, Response, request
from sqlalchemy import text

from climate.cli.operations.processes import web_command
from climate.settings import Settings
from climate.store.engine import connect

PATH = "/insert"

_TABLE = text("CREATE TABLE IF NOT EXISTS ceiling (id bigserial PRIMARY KEY, body jsonb NOT NULL)")
_INSERT = text("INSERT INTO ceiling (body) VALUES (:body) RETURNING id")


def prepare(database_url: str) -> None:
    """Create the table that requests insert into."""
    engine = connect(database_url, pool_size=1)
    with engine.begin() as conn:
        conn.execute(_TABLE)
    engine.dispose()


def application() -> Flask:
    """Return the application over the database that the environment names."""
    settings = Settings.from_env(os.environ)
    engine = connect(settings.database_url, pool_size=settings.web_threads, application="climate-ceiling")
    app = Flask("ceiling")

    @app.post(PATH)
    def insert() -> tuple[dict[str, int], int]:
        with engine.begin() as conn:
            number = conn.execute(_INSERT, {"body": json.dumps(request.get_json())}).scalar_one()
        return {"id": number}, 201

    @app.get("/healthz")
    def health() -> Response:
        return Response("ok")

    return app


if __name__ == "__main__":
    command = web_command(Settings.from_env(os.environ), "benchmarks.ceiling_web:application()")
    os.execv(command[0], command)
