"""A pair of keys for SSH: the public one is kept, the private one is its owner's alone."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from climate.compute.errors import BadRequest

LONGEST = 16384
"""Characters of a public key."""

_NAME = re.compile(r"[A-Za-z0-9 ._@-]{1,255}")
_FORM = "public_key must be one line like 'ssh-ed25519 AAAA… comment'"


@dataclass(frozen=True, slots=True)
class MadeKeys:
    """A pair that was made here, each half in the form of OpenSSH."""

    public: str
    private: str


def make(comment: str) -> MadeKeys:
    """A new pair of Ed25519 keys."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return MadeKeys(f"{public.decode()} {comment}", private.decode())


def check_name(name: str) -> str:
    """A name that fits into a path and into a file of keys; BadRequest."""
    if not _NAME.fullmatch(name) or not name.strip():
        raise BadRequest("Keypair names hold letters, digits, blanks and . _ @ - only, 1 to 255 of them.")
    return name


def check_public(key: str) -> str:
    """A public key in one line, without blanks around it; BadRequest."""
    line = key.strip()
    if len(line) > LONGEST or not line.isprintable():
        raise BadRequest(_FORM)
    kind, blob = _parts(line)
    if blob[:4] != len(kind).to_bytes(4, "big") or blob[4 : 4 + len(kind)] != kind.encode():
        raise BadRequest(_FORM)
    return line


def fingerprint(public: str) -> str:
    """MD5 of the key itself, as ssh-keygen -l -E md5 shows it: a name for the key, not a protection."""
    digest = hashlib.md5(_parts(public)[1], usedforsecurity=False).hexdigest()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def _parts(line: str) -> tuple[str, bytes]:
    words = line.split()
    try:
        return words[0], base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        raise BadRequest(_FORM) from None
