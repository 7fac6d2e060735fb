"""Whether a library can be loaded before a program's own, as LD_PRELOAD does it.

In: a transport and the library's name. Out: yes or no. The dynamic linker itself is asked: it
ignores what it cannot find, and the program would run with another allocator than its row says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchrunner.transports import Transport

JEMALLOC = "libjemalloc.so.2"
_LIMIT_S = 60.0


def can_preload(transport: Transport, library: str) -> bool:
    """Whether the dynamic linker of a host finds a library by its name."""
    env = {"LD_PRELOAD": library, "LC_ALL": "C"}
    done = transport.run(["env", "true"], timeout_s=_LIMIT_S, env=env)
    return done.exit_code == 0 and b"cannot be preloaded" not in done.stderr
