"""Highest token per host, server and pool, stored in the cloud itself as metadata of aggregates.

Each token is a key of its own, so that a late write adds a key and never lowers a stored value. The writer reads the
answer, and gives up when it contains a higher token. This is compare-then-act over HTTP: the few requests of a method
that is under way while a later claim writes its token still arrive. Further protection: a worker checks its claim
before each step; a request lasts no longer than its time-out; every method is idempotent; and the engine compares the
token in the statement that records the result.

Server metadata is not used: users can write to it, and could keep a server for ever with a token that no claim reaches.
"""

from collections.abc import Iterable, Mapping

from climate.cloud import Fenced

PREFIX = "climate:fence:"

Metadata = Mapping[str, str]
Changes = dict[str, str | None]
"""Changes of metadata; None deletes a key."""


def of_host(name: str) -> str:
    return f"host:{name}"


def of_server(server_id: str) -> str:
    return f"server:{server_id}"


def of_pool(name: str) -> str:
    return f"pool:{name}"


def check(metadata: Metadata, subjects: Iterable[str], token: int) -> None:
    """Raise Fenced when a later claim has worked on one of these."""
    if any(_highest(metadata, subject) > token for subject in subjects):
        raise Fenced


def raising(metadata: Metadata, subjects: Iterable[str], token: int) -> Changes:
    """Return the changes that raise these to the token; nothing if it is stored already."""
    changes: Changes = {}
    for subject in subjects:
        if _highest(metadata, subject) < token:
            changes |= dropping(metadata, subject) | {f"{PREFIX}{subject}:{token}": "1"}
    return changes


def dropping(metadata: Metadata, subject: str) -> Changes:
    """Return the changes that forget the tokens of a subject."""
    return {key: None for key in metadata if _subject(key) == subject}


def servers(metadata: Metadata) -> list[str]:
    """Return the ids of the servers with stored tokens."""
    result = {(_subject(key) or "").partition("server:")[2] for key in metadata}
    return sorted(result - {""})


def oldest_pools(metadata: Metadata, keep: int) -> list[str]:
    """Return the pools with stored tokens, except those with the `keep` highest."""
    subjects = {subject for key in metadata if (subject := _subject(key) or "").startswith("pool:")}
    ordered = sorted(subjects, key=lambda subject: (_highest(metadata, subject), subject))
    return [subject.removeprefix("pool:") for subject in ordered[: max(0, len(ordered) - keep)]]


def _highest(metadata: Metadata, subject: str) -> int:
    return max((_token(key) for key in metadata if _subject(key) == subject), default=0)


def _subject(key: str) -> str | None:
    return key.removeprefix(PREFIX).rpartition(":")[0] if key.startswith(PREFIX) else None


def _token(key: str) -> int:
    text = key.rpartition(":")[2]
    return int(text) if text.isdecimal() else 0
