"""Engines: where versions come from, how one is built, what it leaves on disk."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, Name, Scalar

Kind = Literal["system", "git", "crate", "apt", "npm", "pypi", "archive", "path", "native"]


class Needs(Definition):
    """What a build wants installed."""

    debian: list[str] = Field([], description="Debian packages")


class Link(Definition):
    """What the driver is compiled against. Paths are in the tree."""

    engine: str = Field(
        "", description="the driver's own word for the engine (`engine_NAME.cc`); default: the name"
    )
    include: list[str] = Field([], description="folders with header files")
    libraries: list[str] = Field(
        [],
        description="libraries of the build, then `-lNAME` of what they need, in the linker's "
        "order; empty: the installed library, as the driver's engine file says",
    )
    flags: list[str] = Field([], description="more for the driver's compiler: `-std=c++20`")


class Build(Definition):
    """How a source tree becomes binaries. Placeholder: {jobs}."""

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
    driver: Literal["", "kvbench"] = Field(
        "",
        description="the driver of ours that is compiled against the build, where a workload has "
        "steps of it or nothing else is kept",
    )
    link: Link = Field(Link(), description="what the driver is compiled against")
    native: list[str] = Field(
        [],
        description="folders of `native/` that are put into the tree before the commands run, as "
        "`benchrunner-native/NAME`",
    )


class SourceBuild(Definition):
    """What of [build] is otherwise for the trees of one source; what it does not say stays."""

    needs: Needs | None = Field(None, description="instead of [build.needs]")
    commands: list[list[str]] | None = Field(None, description="instead of the commands of [build]")
    keep: list[str] | None = Field(None, description="instead of what [build] keeps")
    link: Link | None = Field(None, description="instead of [build.link]")
    native: list[str] | None = Field(None, description="instead of the folders of [build]")


class Source(Definition):
    """One place that has versions of an engine. Sources are tried in the order written."""

    kind: Kind = Field(
        description="how versions are had: installed, from git, a package of Rust, Debian, npm or "
        "Python, a tarball, a tree; native: a program of ours"
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
        "", description="packages, archive: folder inside the package; path: a local source tree"
    )
    versions: dict[str, str] = Field(
        {},
        description="version -> package: `crate@number`, npm `name@number`, pypi `name==number`, "
        "apt `name=number` (of the Debian source package); archive: version -> file",
    )
    suite: str = Field(
        "",
        description="apt: the suite of the machine's own mirror that has the package; default: the "
        "machine's",
    )
    binary: str = Field("", description="system: program looked up on PATH")
    version_argv: list[str] = Field(
        [], description="system: arguments that make the binary print its version"
    )
    debian: str = Field("", description="system: Debian package that installs the binary")
    development: str = Field(
        "",
        description="system: Debian package with library and header files, which the driver is "
        "compiled against",
    )
    build: SourceBuild = Field(
        SourceBuild(), description="what of [build] is otherwise for this source's trees"
    )


class Data(Definition):
    """What an engine leaves on disk."""

    immutable: list[str] = Field([], description="globs hard-linked into a checkpoint; rest copied")
    effective_options: str = Field("", description="glob of the file that states effective options")
    mapped: bool = Field(
        default=False,
        description="whether the database's file is the process's memory (LMDB): the total size is "
        "then the larger of both, not their sum",
    )


class Engine(Definition):
    """A thing under test: where versions come from, how one is built, what it leaves on disk."""

    name: Name = Field(description="as the file is called")
    title: str = Field(description="as pages show it")
    base: Name | None = Field(
        None,
        description="engine whose sources, build, data and flags this one has where it says none "
        "itself: another row of the same build",
    )
    default: str = Field(
        "",
        description="version taken where an engine is asked for without one; empty: the newest of "
        "the first source that answers",
    )
    flags: str = Field("", description="JSON file: which flag which version knows, and its default")
    source: list[Source] = Field(
        [], description="where versions come from, tried in order; needed unless there is a base"
    )
    build: Build = Field(Build(), description="how a source tree becomes binaries")
    data: Data = Field(Data(), description="what the engine leaves on disk")
    args: dict[str, Scalar | list[str]] = Field(
        {},
        description="flags for the steps whose tool is the job's own (`of_job`); lists as in a "
        "step's args, texts are templates over the workload's parameters",
    )
    max_threads: int | None = Field(
        None, ge=1, description="most threads it can serve; steps with more are left out"
    )

    @property
    def built_as(self) -> str:
        """The engine whose build this one runs: its base, or itself."""
        return self.base or self.name
