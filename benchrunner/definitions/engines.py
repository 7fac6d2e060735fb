"""Engines: where versions come from, how one is built, what it leaves on disk."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, Name


class Source(Definition):
    """One place that has versions of an engine. Sources are tried in the order written."""

    kind: Literal["system", "git", "crate", "archive", "path"] = Field(
        description="how versions are had: installed, from git, a crate, a tarball, a tree"
    )
    url: str = Field("", description="git: repository URL or path")
    ref: list[str] = Field(
        [], description="git: tag patterns, tried in order; {version} is replaced"
    )
    branch: str = Field(
        "", description="git: branch to walk when no tag matches; {major}.{minor}.fb"
    )
    version_file: str = Field("", description="file in the tree that states the version")
    path: str = Field(
        "", description="crate, archive: folder inside the package; path: a local source tree"
    )
    versions: dict[str, str] = Field(
        {}, description="crate: version -> crate@number; archive: version -> file"
    )
    binary: str = Field("", description="system: program looked up on PATH")
    version_argv: list[str] = Field(
        [], description="system: arguments that make the binary print its version"
    )
    debian: str = Field("", description="system: Debian package that installs the binary")


class Needs(Definition):
    """What a build wants installed."""

    debian: list[str] = Field([], description="Debian packages")


class Build(Definition):
    """How a source tree becomes binaries. Placeholders: {jobs}, {source}, {prefix}."""

    needs: Needs = Field(Needs(), description="what a build wants installed")
    commands: list[list[str]] = Field([], description="argument lists, run in order in the tree")
    env: dict[str, str] = Field({}, description="environment of the build")
    portable_env: dict[str, str] = Field(
        {},
        description="environment added when it is built on the controller for other hosts, so that "
        "the result runs on their processors too",
    )
    keep: list[str] = Field(
        [], description="files kept from the tree; the first is the main binary"
    )
    config_file: str = Field(
        "", description="file with NAME=value lines to record (make_config.mk)"
    )
    features: dict[str, str] = Field(
        {}, description="feature -> regular expression that its presence matches in config_file"
    )
    forbid: dict[str, str] = Field(
        {}, description="reason -> regular expression over config_file and log that refuses a build"
    )
    count: str = Field("", description="regular expression of a log line that finishes one file")


class Data(Definition):
    """What an engine leaves on disk."""

    immutable: list[str] = Field([], description="globs hard-linked into a checkpoint; rest copied")
    effective_options: str = Field("", description="glob of the file that states effective options")


class Engine(Definition):
    """A thing under test: where versions come from, how one is built, what it leaves on disk."""

    name: Name = Field(description="as the file is called")
    title: str = Field(description="as pages show it")
    flags: str = Field("", description="JSON file: which flag which version knows, and its default")
    source: list[Source] = Field(description="where versions come from, tried in order")
    build: Build = Field(Build(), description="how a source tree becomes binaries")
    data: Data = Field(Data(), description="what the engine leaves on disk")
