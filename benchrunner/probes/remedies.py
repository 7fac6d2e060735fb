"""Remedies as they are typed: which are commands, and what ``sudo`` has to stand before.

Pure.
"""

from __future__ import annotations

import re
import shlex

_COMMANDS = frozenset(
    ("apt-get", "cpupower", "df", "echo", "mkdir", "mount", "ps", "sudo", "swapoff", "sysctl")
)
"""First words of remedies that are commands; the others are advice."""
_HARMLESS = frozenset(("df", "ps"))
_SUDO = re.compile(r"(?:(?<=^)|(?<=&& )|(?<=; )|(?<=[|] ))sudo ")


def is_command(remedy: str) -> bool:
    """Whether a remedy can be typed; else it is advice.

    >>> is_command("swapoff -a"), is_command("use a work directory on ext4, xfs or btrfs")
    (True, False)
    """
    return bool(remedy) and remedy.split()[0] in _COMMANDS


def as_typed(remedy: str, *, is_root: bool) -> str:
    """A command as root types it, who may have no sudo, or as somebody else does.

    >>> as_typed("swapoff -a", is_root=False), as_typed("sudo mount /d", is_root=True)
    ('sudo swapoff -a', 'mount /d')
    >>> as_typed("echo 0 > /sys/x", is_root=False)
    "sudo sh -c 'echo 0 > /sys/x'"
    """
    if is_root:
        return _SUDO.sub("", remedy)
    if is_harmless(remedy) or "sudo " in remedy:
        return remedy
    is_simple = not set(remedy) & set("><|&;")
    return f"sudo {remedy}" if is_simple else f"sudo sh -c {shlex.quote(remedy)}"


def is_harmless(remedy: str) -> bool:
    """Whether a command only looks, so that anybody may use it."""
    return remedy.split()[0] in _HARMLESS


def own(path: str) -> str:
    """What makes a folder and gives it to whoever types this."""
    quoted = shlex.quote(path)
    return f'sudo mkdir -p {quoted} && sudo chown "$USER" {quoted}'
