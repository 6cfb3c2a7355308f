"""Write the answers of a running OpenStack to tests/cloud/recordings.json: `python -m tests.real_openstack.record`.

It starts an OpenStack of its own. The fakes of the tests are compared with these answers.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cloud.exchanges import RECORDINGS, exchanges
from tests.real_openstack import accounts, services
from tests.real_openstack.configuration import BINDING
from tests.real_openstack.layout import HOSTS


def main() -> None:
    """Record, with sorted keys so that a change of the services shows as a small difference."""
    with TemporaryDirectory(prefix="openstack-") as folder, services.running(Path(folder), BINDING) as layout:
        found = exchanges(accounts.connect(layout, "admin"), HOSTS[0])
        RECORDINGS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
