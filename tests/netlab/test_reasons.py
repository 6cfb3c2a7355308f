"""Why there is no sandbox, in words; and what a probe says is missing."""

import errno
from pathlib import Path

import pytest

from climate.sandbox.features import ProbeResult
from climate.sandbox.namespace_errors import why

REFUSED = OSError(errno.EPERM, "Operation not permitted", "unshare")


def machine(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"proc__sys__kernel__apparmor_restrict_unprivileged_userns": "1\n"}, "AppArmor"),
        ({"proc__sys__kernel__unprivileged_userns_clone": "0\n"}, "kernel.unprivileged_userns_clone=1"),
        ({"proc__sys__user__max_user_namespaces": "0\n"}, "user.max_user_namespaces=10000"),
        ({"run__.containerenv": ""}, "--privileged"),
        ({"proc__sys__kernel__apparmor_restrict_unprivileged_userns": "0\n"}, "unshare: Operation not permitted"),
    ],
)
def test_a_refusal_names_what_forbids(files: dict[str, str], said: str, tmp_path: Path) -> None:
    assert said in why(REFUSED, machine(tmp_path, **files))


def test_too_many_namespaces_are_another_matter(tmp_path: Path) -> None:
    assert "too many" in why(OSError(errno.ENOSPC, "No space left on device"), tmp_path)
    assert "No such device" in why(OSError(errno.ENODEV, "No such device"), tmp_path)


def test_missing_features_come_with_the_packages_that_bring_them() -> None:
    probed = ProbeResult(frozenset({"ip", "veth"}))
    assert probed.lacks(["ip", "veth"]) is None
    assert probed.lacks(["ip", "vlan"]) == "not available in a sandbox here: vlan"
    assert probed.lacks(["nft", "bwrap"]) == (
        "not available in a sandbox here: nft, bwrap (Debian, Ubuntu: apt install bubblewrap nftables)"
    )
    assert ProbeResult(reason="no").lacks([]) == "no"
