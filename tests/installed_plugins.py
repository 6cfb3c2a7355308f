"""The installed plugins, found once in a test run: reading what is installed takes as long as a quick test."""

from functools import cache

from climate import plugin


def installed_plugins() -> dict[str, plugin.ResourcePlugin]:
    """Return the installed plugins by resource type."""
    return dict(_plugins())


@cache
def _plugins() -> dict[str, plugin.ResourcePlugin]:
    return plugin.load()
