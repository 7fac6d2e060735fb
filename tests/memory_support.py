"""What the tests of databases in memory share: who may mount, what is mounted, and a clean end."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchrunner.probes.mounts import may_mount
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

as_root = pytest.mark.skipif(not may_mount(LocalTransport()), reason="wants to mount a tmpfs: root")


def mounts(below: Path) -> list[str]:
    """Mount points below a folder."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].replace("\\040", " ") for line in lines]
    return [point for point in points if point.startswith(f"{below}/")]


@pytest.fixture(autouse=True)
def nothing_stays_mounted(tmp_path: Path) -> Iterator[None]:
    """No mount survives a test that fails."""
    yield
    for point in mounts(tmp_path):
        subprocess.run(["umount", "--lazy", "--", point], check=True)
