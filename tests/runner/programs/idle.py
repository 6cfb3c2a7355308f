"""A process for the runner's tests: it says its name and pid, has a child of its own, and waits for its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

name, *words = sys.argv[1:]
ends: Callable[[int, FrameType | None], None] = lambda number, frame: sys.exit(0)  # noqa: E731
signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in words else ends)
below = subprocess.Popen(["sleep", "1000"])
print(f"{name} {os.getpid()} above {below.pid}", flush=True)
try:
    while True:
        signal.pause()
finally:
    below.kill()
    print(f"{name} ends", flush=True)
