"""Leases that a list leaves out because this release cannot read their rows: notices to those who may know of them."""

from collections.abc import Iterable

from flask import Response, after_this_request

from api.request_context import caller
from climate.domain.errors import UnreadableLease

MOST_NAMED = 20
"""Maximum number of leases that the notices of one answer name."""

SHARED = (
    "A lease of another project, which you may see, has rows that this release cannot read: "
    "an administrator has to repair it; it is left out of this list"
)


def notices(rows: Iterable[object]) -> list[str]:
    """Return a sentence for each unreadable lease of a list: administrators and its own project see it named."""
    reader = caller()
    found = {row.lease_id: row for row in rows if isinstance(row, UnreadableLease)}.values()
    known = [one for one in found if reader.is_admin or one.project_id == reader.project_id]
    texts = [f"{one.named}; it is left out of this list" for one in known[:MOST_NAMED]]
    if len(known) > MOST_NAMED:
        texts.append(f"{len(known) - MOST_NAMED} more leases that this release cannot read are left out of this list")
    return [*texts, SHARED] if len(known) < len(found) else texts


def warn(rows: Iterable[object]) -> None:
    """Name the unreadable leases of a list in the header Warning of the answer, in the form of RFC 7234."""
    texts = notices(rows)
    if not texts:
        return

    @after_this_request
    def with_header(answer: Response) -> Response:
        answer.headers["Warning"] = ", ".join(f'199 - "{text}"' for text in texts)
        return answer
