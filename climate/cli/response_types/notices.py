"""Notifications, topics of mail, calendar feeds, and the audit."""

from typing import NotRequired, TypedDict


class Notice(TypedDict):
    """A notification; the last keys are there for those whose delivery was given up."""

    id: str
    at: str
    kind: str
    message: str
    project_id: str | None
    user_id: str | None
    lease_id: str | None
    host_id: str | None
    details: dict[str, object]
    audience: NotRequired[str]
    attempts: NotRequired[int]
    error: NotRequired[str]


class MailPreferences(TypedDict):
    """The topics about which a user gets mail."""

    topics: list[str]
    address: str | None
    is_sent: bool


class CalendarFeed(TypedDict):
    """A calendar feed."""

    id: str
    name: str
    scope: str
    project_id: str
    user_id: str
    created_at: str


class NewCalendarFeed(CalendarFeed):
    """A new calendar feed with its URL, which is shown once."""

    url: str


class AuditEntry(TypedDict):
    """A change by an administrator or a user, with the object before and after it."""

    id: str
    at: str
    author: str
    author_project_id: str
    request_id: str
    kind: str
    object_id: str
    name: str
    project_id: str | None
    action: str
    before: dict[str, object] | None
    after: dict[str, object] | None
