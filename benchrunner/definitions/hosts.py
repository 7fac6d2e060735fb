"""Hosts: how they are reached, what a sweep may use and change there."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, Name


class HostLimits(Definition):
    """What a sweep may take on a host."""

    disk_gib: float | None = Field(
        None,
        gt=0,
        description="most that one trial may need on disk; a plan that needs more is refused",
    )
    step_hours: float | None = Field(
        None, gt=0, description="longest that one step may take; shortens its own time limit"
    )
    jobs: int | None = Field(
        None, ge=1, description="compilers at a time for builds there; default: one for each CPU"
    )
    connect_s: float = Field(
        20.0, gt=0, description="longest for reaching the host and logging in, in seconds"
    )
    reconnect_s: float = Field(
        3600.0,
        ge=0,
        description="how long a host that was lost in the middle of a trial is waited for, in "
        "seconds; its step goes on meanwhile",
    )


class Host(Definition):
    """Where to run. A host without an address is this machine."""

    name: Name = Field(description="as the file is called")
    address: str = Field(
        "",
        description="[user@]host[:port], or an alias of ~/.ssh/config; empty: this machine",
    )
    port: int | None = Field(None, ge=1, le=65535, description="SSH port; default 22")
    user: str = Field("", description="login; default as ~/.ssh/config says, else your own name")
    key_files: list[str] = Field(
        [],
        description="private keys to log in with; empty: those of ~/.ssh/config, and the usual "
        "ones",
    )
    agent: bool = Field(default=True, description="whether keys of a running SSH agent are tried")
    jump: str = Field(
        "",
        description="host to go through: [user@]host[:port], an alias, or a host of the inventory; "
        "several separated by commas, first the one that is reached first",
    )
    work_dir: str = Field(
        "",
        description="folder for databases, runs and builds; empty: under --data (this machine "
        "only)",
    )
    lock_dir: str = Field(
        "",
        description="folder on the host where its lock is, shared by all controllers and users; "
        "empty: /run/lock, or /tmp where that is missing",
    )
    data: dict[str, str] = Field(
        {},
        description="data directory -> what must be mounted there: a file system (`xfs`), a device "
        "(`/dev/nvme1n1`), or empty for anything; the first is used unless --database-dir names "
        "one",
    )
    wal: dict[str, str] = Field(
        {},
        description="directory for write-ahead logs -> what must be mounted there; the first is "
        "used unless --wal-dir names one; none: with the database",
    )
    tune: dict[Name, str] = Field(
        {},
        description="settings changed for the time of a sweep and put back afterwards; names and "
        "values are in host-settings.md",
    )
    env: dict[str, str] = Field({}, description="environment of every process")
    tags: list[str] = Field([], description="free words")
    roles: list[Literal["client", "server"]] = Field(
        ["client", "server"],
        description="client: it runs the steps of workloads; server: their services",
    )
    service_address: str = Field(
        "",
        description="name or IPv4 address at which clients on other hosts reach services here, and "
        "on which these listen (--server); empty: where SSH finds the host",
    )
    limits: HostLimits = Field(HostLimits(), description="what a sweep may take there")
    build: Literal["host", "controller"] = Field(
        "host",
        description="where engines are compiled: there, or here (the host then needs no compiler, "
        "but a processor and libc that can run the result)",
    )
