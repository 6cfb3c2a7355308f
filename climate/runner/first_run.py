"""Setup before the first request: `climate up` runs it after the migrations, in its own process."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from climate.settings import SettingError, Settings


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Create identity, clouds.yaml and, with --demo, a small demo cloud.

    Return 2, with the reason in one line on stderr, for an invalid setting or file.
    """
    if not find_spec("climate.bootstrap"):
        return 0
    try:
        importlib.import_module("climate.bootstrap").prepare(Settings.from_env(environ), demo="--demo" in arguments)
    except (SettingError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
