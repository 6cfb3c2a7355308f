"""Space that images leave on their disk; tests/api/compute/test_images.py has the limits of projects."""

import os
from pathlib import Path

import pytest

from climate.compute.errors import NoImageRoom
from climate.compute.images import quota
from climate.compute.images.quota import ImageLimits

MB = 1 << 20
BLOCKS = [bytes(MB)] * 20
MORE_THAN_THERE_IS = ImageLimits(free_mb=1 << 40)


def test_an_upload_of_unknown_length_stops_when_too_little_space_is_left(tmp_path: Path) -> None:
    """Nobody has announced its size, so the disk is looked at every few megabytes."""
    taken: list[bytes] = []
    with pytest.raises(NoImageRoom, match="not enough room on the disk of images"):
        taken.extend(quota.checked(MORE_THAN_THERE_IS, tmp_path, BLOCKS))
    assert 0 < len(taken) < 8
    assert len(list(quota.checked(ImageLimits(), tmp_path, BLOCKS))) == len(BLOCKS)


def test_the_announced_size_of_an_upload_counts_before_its_first_byte(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    quota.check_disk(ImageLimits(), tmp_path)
    with pytest.raises(NoImageRoom):
        quota.check_disk(ImageLimits(), tmp_path, 2 * disk.f_blocks * disk.f_frsize)
    with pytest.raises(NoImageRoom):
        quota.check_disk(MORE_THAN_THERE_IS, tmp_path)
