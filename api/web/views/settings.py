"""Settings of a user: time zone, mail, calendar feeds, tokens, and application credentials."""

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api.path_aliases import CALENDAR
from api.request_context import caller, climate, deployment, identity
from api.reservation.ids import path_id
from api.reservation.view_decorator import PREFIX as V1
from api.web import form_fields, preferences, sessions
from api.web.blueprint import PREFIX, SIGN_IN, SIGNED_IN, page
from climate.domain.errors import InvalidInput
from climate.domain.notifications import Topic
from climate.identity import credentials, read_operations
from climate.identity.authentication import page_sign_in, request_authentication
from climate.identity.credentials import NewCredential
from climate.identity.models import Credential
from climate.service.calendars import feeds
from climate.service.notifications import mail
from climate.store.notices.calendar_feeds import Feed, Scope

SETTINGS = f"{PREFIX}/settings"
LONGEST_FEED = 80
MOST_FEEDS = 100
TOPICS = {
    Topic.START: "an hour before a lease starts",
    Topic.END_24H: "a day before a lease ends",
    Topic.END_1H: "an hour before a lease ends",
    Topic.BEFORE_END: "at the time that a lease has for its own notice",
    Topic.DEGRADED: "when a lease lacks hosts, or could not start",
    Topic.HEALED: "when a lease has all its hosts again",
    Topic.ENDED: "when a lease has ended",
    Topic.PREEMPTED: "when hosts of a preemptible lease are to be taken",
    Topic.WAITING: "when a lease of the waiting list got its hosts, or its time is over",
}


@page("GET", "/settings", SIGNED_IN)
def show() -> ResponseReturnValue:
    """Show the settings of the user."""
    return _page()


def _page(secret: Credential | None = None, shown_once: str = "", feed_url: str = "", token: str = "") -> str:
    """Return the page; a new secret or URL is in this answer alone."""
    who = caller()
    has_role = who.project_id != "" and who.has("reader")
    return render_template(
        "settings.html",
        zones=sorted(preferences.available_zones()),
        mail=mail.preferences(climate(), who) if has_role else None,
        topics={topic: TOPICS[topic] for topic in Topic},
        feeds=_own_feeds() if has_role else [],
        credentials=read_operations.credentials(identity(), who.user_id) if _is_bundled() else None,
        new_credential=secret,
        shown_once=shown_once,
        feed_url=feed_url,
        token=token,
        url=deployment().settings.base_url,
    )


def _own_feeds() -> list[Feed]:
    """Return the user's own feeds in the project; administrators could see all."""
    known = feeds.listed(climate(), caller(), None, MOST_FEEDS)
    return [one for one in known if (one.user_id, one.project_id) == (caller().user_id, caller().project_id)]


@page("POST", "/settings/mail", "mail_preferences:put")
def change_mail() -> ResponseReturnValue:
    """Keep the topics about which the user gets mail."""
    unknown = [topic for topic in request.form.getlist("topic") if topic not in set(Topic)]
    if unknown:
        raise InvalidInput(f"topic is {unknown[0][:20]!r}: expected is one of {', '.join(Topic)}")
    mail.set_preferences(climate(), caller(), [Topic(topic) for topic in request.form.getlist("topic")])
    flash("Your mail was changed.", "good")
    return redirect(f"{SETTINGS}#mail", 303)


@page("POST", "/settings/feeds", "calendar_feeds:post")
def create_feed() -> ResponseReturnValue:
    """Create a calendar feed; the answer has its secret URL."""
    name, scope = form_fields.text(request.form, "name", LONGEST_FEED) or "Leases", request.form.get("scope", "")
    if scope not in set(Scope):
        raise InvalidInput(f"scope is {scope[:20]!r}: expected is one of {', '.join(Scope)}")
    _, secret = feeds.create(climate(), caller(), name, Scope(scope))
    return _page(feed_url=f"{deployment().settings.base_url}{V1}/{CALENDAR}/{secret}.ics")


@page("POST", "/settings/feeds/<feed_id>/delete", "calendar_feeds:delete")
def delete_feed(feed_id: str) -> ResponseReturnValue:
    """Revoke a calendar feed."""
    feeds.revoke(climate(), caller(), path_id(feed_id, f"There is no calendar feed {feed_id[:80]!r}."))
    flash("The calendar feed was revoked.", "good")
    return redirect(f"{SETTINGS}#feeds", 303)


@page("POST", "/settings/credentials", SIGNED_IN)
def create_credential() -> ResponseReturnValue:
    """Create an application credential with the user's roles in this project; the answer has its secret."""
    _only_bundled()
    new = NewCredential(
        name=form_fields.text(request.form, "name", 64),
        description=form_fields.text(request.form, "description"),
        expires_at=form_fields.moment(request.form, "expires"),
    )
    grant = request_authentication.of_token(identity(), sessions.token())
    made, secret = credentials.create(identity(), grant, caller(), new)
    return _page(made, secret)


@page("POST", "/settings/credentials/<credential_id>/delete", SIGNED_IN)
def delete_credential(credential_id: str) -> ResponseReturnValue:
    """Delete an application credential of the user, and its tokens."""
    _only_bundled()
    grant = request_authentication.of_token(identity(), sessions.token())
    credentials.remove(identity(), grant, caller(), caller().user_id, credential_id)
    flash("The application credential was deleted.", "good")
    return redirect(f"{SETTINGS}#credentials", 303)


@page("POST", "/settings/tokens", SIGNED_IN)
def issue_token() -> ResponseReturnValue:
    """Issue a token of the user for this project; the answer has it."""
    return _page(token=page_sign_in.for_project(identity(), sessions.token(), caller().project_id))


@page("POST", "/settings/sign-out-everywhere", SIGNED_IN)
def sign_out_everywhere() -> ResponseReturnValue:
    """End all sessions of the user, and revoke the user's tokens."""
    _only_bundled("Tokens")
    page_sign_in.sign_out(identity(), sessions.token(), everywhere=True)
    sessions.sign_out()
    flash("You are signed out everywhere.")
    return redirect(SIGN_IN, 303)


def _is_bundled() -> bool:
    return deployment().settings.identity == "bundled"


def _only_bundled(what: str = "Application credentials") -> None:
    if not _is_bundled():
        raise InvalidInput(f"{what} of this deployment are Keystone's: change them there")
