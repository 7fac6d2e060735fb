"""OpenSSH's client configuration as one text: what ``Include`` names is put in its place.

Paramiko reads the language of these files except for ``Include``.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from benchrunner.errors import TransportError

_DEEPEST = 16
"""As in OpenSSH."""
_KEYWORD = re.compile(r"\s*(include|host|match)(?:\s*=\s*|\s+)(.*)", re.IGNORECASE | re.DOTALL)


def text_with_includes(file: Path, *, required: bool = False, depth: int = 0) -> str:
    """The text of a configuration file, complete; empty when the file is not there.

    Raises:
        TransportError: A file cannot be read, or includes go round in circles.
    """
    if depth > _DEEPEST:
        raise TransportError(
            f"{file} is included too deeply", "look for a file that includes itself"
        )
    try:
        lines = file.read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        if required:
            raise TransportError(f"{file} cannot be read: it is not there") from None
        return ""
    except OSError as error:
        raise TransportError(f"{file} cannot be read: {error.strerror}") from error
    block, text = "Host *", []
    for line in lines:
        match = _KEYWORD.match(line)
        if match is None:
            text.append(line)
        elif match[1].lower() == "include":
            text += [*_included(file, match[2], depth), block]
        else:
            block = line
            text.append(line)
    return "\n".join(text)


def _included(file: Path, names: str, depth: int) -> list[str]:
    """The texts that an ``Include`` line names; relative names are beside the file."""
    try:
        words = shlex.split(names)
    except ValueError as error:
        raise TransportError(f"{file} cannot be read: Include {names}: {error}") from error
    found: list[str] = []
    for word in words:
        pattern = file.parent / Path(word).expanduser()
        root = Path(pattern.anchor)
        for path in sorted(root.glob(str(pattern.relative_to(root)))):
            found.append(text_with_includes(path, depth=depth + 1))
    return found
