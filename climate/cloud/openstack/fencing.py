"""The highest token per host, server and pool, kept in the cloud itself: in the metadata of aggregates.

A token is a key of its own, so that a late write adds one and never lowers
what is there; whoever writes reads the answer, and gives up when a higher one
stands beside his.  That is compare, then act, over HTTP, and no more: the few
requests of a verb that is under way while a later claim writes its token still
arrive.  What protects then: a worker asks whether its claim is lost before each
step, a request lasts no longer than its time-out, every verb ends in the same
place whoever asks for it, and what the engine records compares the token in one
statement.

Not in the metadata of servers: their users could write there, and keep a
server for ever by giving it a token that no claim ever reaches.
"""

from collections.abc import Iterable, Mapping

from climate.cloud import Fenced

PREFIX = "climate:fence:"

Metadata = Mapping[str, str]
Changes = dict[str, str | None]
"""What is to be set in metadata; None takes a key away."""


def of_host(name: str) -> str:
    return f"host:{name}"


def of_server(server_id: str) -> str:
    return f"server:{server_id}"


def of_pool(name: str) -> str:
    return f"pool:{name}"


def check(metadata: Metadata, subjects: Iterable[str], token: int) -> None:
    """Fenced when a later claim has worked on one of these."""
    if any(_highest(metadata, subject) > token for subject in subjects):
        raise Fenced


def raising(metadata: Metadata, subjects: Iterable[str], token: int) -> Changes:
    """What sets these to the token; nothing where it stands already."""
    changes: Changes = {}
    for subject in subjects:
        if _highest(metadata, subject) < token:
            changes |= dropping(metadata, subject) | {f"{PREFIX}{subject}:{token}": "1"}
    return changes


def dropping(metadata: Metadata, subject: str) -> Changes:
    """What forgets the tokens of a subject."""
    return {key: None for key in metadata if _subject(key) == subject}


def servers(metadata: Metadata) -> list[str]:
    """Ids of the servers that tokens are kept of."""
    found = {(_subject(key) or "").partition("server:")[2] for key in metadata}
    return sorted(found - {""})


def oldest_pools(metadata: Metadata, keep: int) -> list[str]:
    """The pools that tokens are kept of, but for those with the `keep` highest."""
    found = {subject for key in metadata if (subject := _subject(key) or "").startswith("pool:")}
    ordered = sorted(found, key=lambda subject: (_highest(metadata, subject), subject))
    return [subject.removeprefix("pool:") for subject in ordered[: max(0, len(ordered) - keep)]]


def _highest(metadata: Metadata, subject: str) -> int:
    return max((_token(key) for key in metadata if _subject(key) == subject), default=0)


def _subject(key: str) -> str | None:
    return key.removeprefix(PREFIX).rpartition(":")[0] if key.startswith(PREFIX) else None


def _token(key: str) -> int:
    text = key.rpartition(":")[2]
    return int(text) if text.isdecimal() else 0
