"""Blueprints of Compute; before each view they read the microversion of the client."""

from flask import Blueprint

from api.compute import microversion
from api.compute.zones import routing
from climate.compute.errors import NotFound


def compute_blueprint(noun: str) -> Blueprint:
    """Return a blueprint for routes below /compute/v2.1."""
    made = Blueprint(f"compute-{noun}", __name__, url_prefix="/compute/v2.1")
    made.before_request(microversion.read)
    made.register_error_handler(NotFound, routing.answer)
    made.register_error_handler(routing.Answered, routing.answer_passed_on)
    made.after_request(microversion.add_headers)
    return made
