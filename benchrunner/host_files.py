"""The inventory as a mapping, each host's file read only when that host is asked for.

A file that cannot be used so keeps nobody from reaching the other hosts. Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchrunner.catalog import Catalog
    from benchrunner.definitions import Host


class HostFiles(Mapping[str, "Host"]):
    """Host definitions by name."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getitem__(self, name: str) -> Host:
        """One host.

        Raises:
            KeyError: The inventory has none of that name.
            ConfigurationError: Its file cannot be used.
        """
        if name not in self._catalog.names("hosts"):
            raise KeyError(name)
        return self._catalog.host(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names("hosts"))

    def __len__(self) -> int:
        return len(self._catalog.names("hosts"))
