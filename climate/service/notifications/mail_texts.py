"""Messages: a notification as text and HTML, with its lease as an iCalendar attachment."""

from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from jinja2 import Environment, StrictUndefined

from climate.service.calendars import ics
from climate.service.notifications.notice_texts import time_text
from climate.store.notices.calendar_feeds import Entry
from climate.store.notices.notifications import Kept

LONGEST_SUBJECT = 150
LONGEST_ADDRESS = 254

_PLAIN = Environment(autoescape=False, undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701
_MARKUP = Environment(autoescape=True, undefined=StrictUndefined)

_TEXT = _PLAIN.from_string(
    """\
{{ message }}
{% for name, value in rows %}
{{ name }}: {{ value }}
{%- endfor %}

You get this mail because you asked for it. Fewer or other ones: climate mail set
"""
)

_HTML = _MARKUP.from_string(
    """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{ message }}</title></head>
<body style="font-family: sans-serif">
<p>{{ message }}</p>
<table>{% for name, value in rows %}
<tr><th align="left">{{ name }}</th><td>{{ value }}</td></tr>{% endfor %}
</table>
<p><small>You get this mail because you asked for it. Fewer or other ones: <code>climate mail set</code></small></p>
</body></html>
"""
)


def usable(address: str) -> bool:
    """Return whether mail can be sent to an address: one plain address, without a name, lines or lists."""
    try:
        read = Address(addr_spec=address)
    except (MessageError, ValueError, IndexError):
        return False
    plain = address.isprintable() and " " not in address and len(address) <= LONGEST_ADDRESS
    return bool(read.username and read.domain) and plain


def message(kept: Kept, entry: Entry | None, sender: str, recipient: str) -> EmailMessage:
    """Build the message of a notification. Its Message-ID is the same for every attempt.

    Texts of users become one line in headers, and are escaped in HTML.
    """
    made = EmailMessage(policy=SMTP)
    line = one_line(kept.notice.message)
    made["Subject"] = line if len(line) <= LONGEST_SUBJECT else line[: LONGEST_SUBJECT - 1] + "…"
    made["From"] = sender
    made["To"] = recipient
    made["Date"] = kept.at
    made["Message-ID"] = f"<climate-notice-{kept.id}-{int(kept.at.timestamp())}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    values = {"message": line, "rows": _rows(entry)}
    made.set_content(_TEXT.render(values))
    made.add_alternative(_HTML.render(values), subtype="html")
    if entry is not None:
        content = ics.calendar(entry.name, [entry])
        made.add_attachment(
            content, maintype="text", subtype="calendar", filename="lease.ics", params={"method": "PUBLISH"}
        )
    return made


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and what a header would decode (RFC 2047)."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(plain.replace("=?", "= ?").split())


def _rows(entry: Entry | None) -> list[tuple[str, str]]:
    if entry is None:
        return []
    return [
        ("Lease", one_line(entry.name)),
        ("Id", str(entry.lease_id)),
        ("Start", time_text(entry.period.start)),
        ("End", time_text(entry.period.end)),
        *(("Resources", resource) for resource in entry.resources),
    ]
