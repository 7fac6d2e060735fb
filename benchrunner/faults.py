"""Places where a test may end this process as if the power had failed; nothing happens otherwise.

``BENCHRUNNER_FAULT=name`` kills the process with SIGKILL at the first passage of ``point("name")``,
``BENCHRUNNER_FAULT=name:3`` at the third. What is left to count is kept in the variable itself.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "BENCHRUNNER_FAULT"


def point(name: str) -> None:
    """Ends the process here, without any clean-up, when the environment asks for it.

    Args:
        name: Words joined by hyphens, unique in the project.
    """
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    wanted_name, _, passages = wanted.partition(":")
    if wanted_name != name:
        return
    if passages.isdigit() and int(passages) > 1:
        os.environ[VARIABLE] = f"{name}:{int(passages) - 1}"
        return
    os.kill(os.getpid(), signal.SIGKILL)
