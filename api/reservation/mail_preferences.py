"""Mail preferences: the topics about which a user gets mail."""

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.unchanged_fields import Update
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.domain.notifications import Topic
from climate.service.notifications import mail
from climate.service.notifications.mail import Preferences

PATH = "/mail-preferences"
TOPICS = [str(topic) for topic in Topic]

blueprint = Blueprint("mail_preferences", __name__, url_prefix=PREFIX, description="Mail to users about their leases.")


class PreferencesOut(Schema):
    class Meta:
        unknown = RAISE

    topics = fields.List(fields.String(), required=True)
    address = fields.String(
        required=True, allow_none=True, metadata={"description": "Your address, by the identity service."}
    )
    is_sent = fields.Boolean(required=True, metadata={"description": "Whether this deployment sends mail."})


class PreferencesOrder(Update, Strict):
    """Topics to set; read-only keys of the answer are accepted with the values that they have."""

    answer_key = "mail_preferences"
    answer_schema = PreferencesOut

    topics = fields.List(
        fields.String(validate=validate.OneOf(TOPICS)),
        required=True,
        validate=validate.Length(max=len(TOPICS)),
        metadata={"description": "Topics about which you get mail; an empty list: no mail."},
    )


class PreferencesAnswer(Schema):
    mail_preferences = fields.Nested(PreferencesOut, required=True)


def _answer(known: Preferences) -> Read:
    shown = {"topics": [str(topic) for topic in known.topics], "address": known.address, "is_sent": known.is_sent}
    return {"mail_preferences": shown}


def _preferences_now() -> Read:
    return _answer(mail.preferences(climate(), caller()))


@serve(blueprint, "GET", PATH, Operation("mail_preferences:get", {200: PreferencesAnswer}))
def show_preferences(query: Read) -> ResponseReturnValue:
    """Show the topics about which you get mail."""
    return _preferences_now()


@serve(
    blueprint,
    "PUT",
    PATH,
    Operation(
        "mail_preferences:put",
        {200: PreferencesAnswer},
        body=PreferencesOrder,
        shows=_preferences_now,
        example={"topics": ["start", "end_1h", "degraded"]},
    ),
)
def set_preferences(query: Read, body: Read) -> ResponseReturnValue:
    """Set the topics about which you get mail, in all projects."""
    return _answer(mail.set_preferences(climate(), caller(), [Topic(topic) for topic in body["topics"]]))
