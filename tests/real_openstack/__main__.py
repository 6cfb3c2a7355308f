"""Run an OpenStack until it is interrupted: `python -m tests.real_openstack [--home FOLDER] [--no-filter]`."""

import argparse
import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.real_openstack import accounts, configuration, services, stores


def main() -> int:
    """Run an OpenStack in a new folder, and print the path of its clouds.yaml."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_openstack")
    parser.add_argument("--home", type=Path, help="an empty folder with a short path; by default a temporary one")
    parser.add_argument("--no-filter", action="store_true", help="Nova without the filter of climate")
    asked = parser.parse_args()
    if reason := stores.missing():
        print(f"an OpenStack cannot run here: {reason}", file=sys.stderr)
        return 1
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    with TemporaryDirectory(prefix="openstack-") as folder:
        home = asked.home or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        with services.running(home, *(() if asked.no_filter else (configuration.BINDING,))) as layout:
            print(f"OS_CLIENT_CONFIG_FILE={accounts.clouds(layout)} openstack --os-cloud admin hypervisor list")
            over.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
