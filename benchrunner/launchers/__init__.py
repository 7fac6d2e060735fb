"""How a long process is started on a host and watched: the protocol that every launcher keeps.

A run is a folder on the host. Whoever knows the folder can find, watch and stop the run; the
controller that started it is not needed. ``tests/contract/test_launcher.py`` holds every launcher
to this page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.model import Command, Handle
    from benchrunner.workdir import FreshFolders


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One process to start, where it leaves its files, and its limits."""

    run_dir: str
    """Absolute; made if it is not there. It must not hold a run yet."""
    run_id: str
    command: Command
    cwd: str
    timeout_s: float | None = None
    grace_s: float = 10.0
    """Between TERM and KILL, at the time limit."""
    interval_s: float = 1.0
    """Between samples."""
    du_dirs: tuple[str, ...] = ()
    device_dir: str | None = None
    clear_env: bool = False
    """Whether ``command.env`` is the whole environment, not an addition to the host's."""
    pack: tuple[str, ...] = ()
    """Arguments for sending the run folder along, should the run be over at once."""
    fresh: FreshFolders | None = None
    """Made empty first, in the same round trip; not when the run was started before."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run folder says at one moment.

    ``lost``: it was started, is not running, and left no status. ``absent``: nothing was started.
    """

    state: Literal["absent", "running", "finished", "lost"]
    status: Mapping[str, Any] | None = None
    """Contents of ``status.json`` once finished."""
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    packed: bytes | None = None
    """The run folder as ``pack`` sends it, when it came along with the news of the end."""


Tick = Callable[[RunState, float], None]
"""Called while a run goes on, with its state and the seconds since it was started."""


class Launcher(Protocol):
    """A way to start processes on one host. Every failure is a ``LaunchError``."""

    def start(self, request: LaunchRequest) -> Handle:
        """Starts the command; it goes on when this controller ends. A run folder is used once.

        Raises:
            ForeignDirectoryError: A folder of ``fresh`` is not ours; nothing was touched.
        """
        ...

    def find(self, run_dir: str) -> Handle | None:
        """Handle of the run that was started in a folder, in whatever state it is now."""
        ...

    def poll(self, handle: Handle) -> RunState:
        """How the run stands. Cheap enough to be asked a thousand times a second."""
        ...

    def stop(self, handle: Handle, grace_s: float) -> RunState:
        """Ends whatever is left of the run, and returns once nothing is; a finished run stays."""
        ...

    def port(self, arguments: Sequence[str], timeout_s: float) -> Mapping[str, Any]:
        """What the host says of one of its TCP ports; the words are ``br-supervise port``'s."""
        ...

    def wait(self, handle: Handle, on_tick: Tick | None = None) -> RunState:
        """Polls until the run is finished or lost."""
        ...
