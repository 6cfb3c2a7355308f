"""Filters by the image of a server."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from climate.compute.errors import BadRequest
from climate.compute.models.request import Spec
from climate.compute.scheduler.filters.location import everywhere
from climate.compute.scheduler.hosts import hypervisor_version
from climate.compute.scheduler.hosts.hypervisor_version import Bound
from climate.compute.scheduler.hosts.table import Hosts, Mask, Profile
from climate.compute.scheduler.scheduler_parts import Filter, Options

# fmt: off
ARCHITECTURES = frozenset((
    "alpha", "armv6", "armv7", "armv7b", "aarch64", "cris", "i686", "ia64", "lm32", "loongarch64", "m68k",
    "microblaze", "microblazeel", "mips", "mipsel", "mips64", "mips64el", "openrisc", "parisc", "parisc64", "ppc",
    "ppcle", "ppc64", "ppc64le", "ppcemb", "riscv64", "s390", "s390x", "sh4", "sh4eb", "sparc", "sparc64",
    "unicore32", "x86_64", "xtensa", "xtensaeb",
))
HYPERVISORS = frozenset((
    "baremetal", "bhyve", "climate", "container", "docker", "fake", "hyperv", "ironic", "kqemu", "kvm", "lxc",
    "lxd", "openvz", "parallels", "phyp", "powervm", "process", "qemu", "test", "uml", "vbox", "virtuozzo",
    "vmware", "xen", "zvm",
))
MODES = frozenset(("exe", "hvm", "uml", "xen"))
# fmt: on

ALIASES: Mapping[str, Mapping[str, str]] = {
    "architecture": dict.fromkeys(("i386", "i486", "i586", "x86_32", "x86_32p"), "i686") | {"amd64": "x86_64"},
    "hypervisor type": {"xapi": "xen"},
    "mode of virtual machines": {"pv": "xen", "hv": "hvm", "baremetal": "hvm"},
}
KINDS = (
    ("architecture", ("architecture", "hw_architecture"), ARCHITECTURES),
    ("hypervisor type", ("hypervisor_type", "img_hv_type"), HYPERVISORS),
    ("mode of virtual machines", ("vm_mode", "hw_vm_mode"), MODES),
)
"""Node order of a capability: its label, the image properties that request it, and the known values."""

_HYPERVISOR = 1
"""Index of the hypervisor type."""

VERSION = ("hypervisor_version_requires", "img_hv_requested_version")


def _property(image: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((str(image[name]) for name in names if image.get(name)), None)


def canonical(what: str, text: str) -> str:
    """Return the canonical name of an architecture, hypervisor or mode."""
    word = text.strip().lower()
    return ALIASES[what].get(word, word)


@dataclass(frozen=True, slots=True)
class ImageRequirements:
    """Requirements of an image on a node."""

    words: tuple[str | None, ...]
    """(architecture, hypervisor type, mode)"""
    version: str | None
    bounds: tuple[Bound, ...]

    def __bool__(self) -> bool:
        return any(self.words) or self.version is not None


def requirements(hosts: Hosts, spec: Spec) -> ImageRequirements:
    """Return the requirements of the image. Raise BadRequest for values unknown to climate and all nodes."""
    result: list[str | None] = []
    for index, (what, names, known) in enumerate(KINDS):
        text = _property(spec.image, names)
        word = None if text is None else canonical(what, text)
        if word and word not in known and word not in _offered(hosts, index, what):
            raise BadRequest(f"The image requires the unknown {what} {text!r}.")
        result.append(word)
    version = _property(spec.image, VERSION)
    return ImageRequirements(tuple(result), version, hypervisor_version.parse(version) if version else ())


def _offered(hosts: Hosts, index: int, what: str) -> set[str]:
    said = {triple[index] for profile in hosts.profile.values for triple in profile.supported}
    own = {profile.hypervisor_type for profile in hosts.profile.values} if index == _HYPERVISOR else set()
    return {canonical(what, word) for word in said | own}


def image_fits(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes that support the image's architecture, hypervisor, mode and hypervisor version."""
    asked = requirements(hosts, spec)
    if not asked:
        return everywhere(hosts)

    def fits(profile: Profile) -> bool:
        return any(_runs(profile, triple, asked.words) for triple in profile.supported) and (
            not profile.hypervisor_version or hypervisor_version.within(profile.hypervisor_version, asked.bounds)
        )

    return hosts.profile.where(fits)


def _runs(profile: Profile, triple: tuple[str, str, str], words: tuple[str | None, ...]) -> bool:
    """Return whether a kind of servers matches the image; the kind includes the node's hypervisor type."""
    offered = [{word} for word in triple]
    offered[_HYPERVISOR].add(profile.hypervisor_type)
    named = zip(words, offered, KINDS, strict=True)
    return all(word is None or word in {canonical(kind[0], one) for one in said} for word, said, kind in named)


def isolated(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes where isolated images and isolated hosts match, as in Nova's IsolatedHostsFilter."""
    apart = np.isin(hosts.service_hosts, list(options.isolated_hosts))
    if not options.isolated_images:
        return ~apart if options.restrict_isolated else everywhere(hosts)
    image_apart = spec.image_id in options.isolated_images
    if options.restrict_isolated:
        return np.asarray(apart == image_apart, dtype=np.bool_)
    return apart if image_apart else everywhere(hosts)


IMAGE_PROPERTIES = Filter(
    "ImagePropertiesFilter",
    image_fits,
    why=lambda *_: "does not support the properties requested in the image.",
    check=requirements,
)
ISOLATED_HOSTS = Filter(
    "IsolatedHostsFilter", isolated, why=lambda *_: "is isolated and the image is not, or the reverse."
)
