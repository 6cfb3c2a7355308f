"""A gate: a FIFO at which a guest waits until it is woken.

The guest itself holds it open, for reading and writing: it waits on through the
death of whoever made it, and any process can open the gate.
"""

import os
from pathlib import Path

NAME = "gate"


def make(home: Path, *, held: bool) -> int:
    """An open gate to be handed to the guest; its file is there only while the guest is `held`."""
    gate = home / NAME
    gate.unlink(missing_ok=True)
    os.mkfifo(gate, 0o600)
    handle = os.open(gate, os.O_RDWR)
    if not held:
        gate.unlink()
    return handle


def closed(home: Path) -> bool:
    """Whether a guest waits, or waited when it died."""
    return (home / NAME).exists()


def let_through(home: Path) -> bool:
    """Let a held guest go on; False when it has died meanwhile."""
    gate = home / NAME
    try:
        handle = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        os.write(handle, b"\n")
    finally:
        os.close(handle)
    gate.unlink(missing_ok=True)
    return True
