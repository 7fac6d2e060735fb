"""A tiny engine, a C program of two files that builds in a moment: as a tree, a repository."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from benchrunner.definitions import Engine

if TYPE_CHECKING:
    from pathlib import Path

MAKEFILE = """\
$(shell printf 'PLATFORM_CXXFLAGS=-DZSTD -DLZ4\\nOPT=-O2\\nOTHER=1\\n' > make_config.mk)
$(info $$DEBUG_LEVEL is $(DEBUG_LEVEL))
tiny_bench: main.o help.o
\t@echo "  CCLD     $@"
\t@$(CC) -o $@ $^
%.o: %.c
\t@echo "  CC       $@"
\t@echo "$@" >> "$(BUILD_MARK)"
\t@$(CC) $(EXTRA_CFLAGS) -I. -c -o $@ $<
"""

MAIN = """\
#include <stdio.h>
#include <string.h>
#include "include/version.h"
void help(void);
int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--help")) { help(); return 1; }
  printf("tiny_bench version %d.%d.%d\\n", TINY_MAJOR, TINY_MINOR, TINY_PATCH);
#ifdef DEBUG
  puts("WARNING: Assertions are enabled; benchmarks unnecessarily slow");
#endif
  return 0;
}
"""

HELP = """\
#include <stdio.h>
void help(void) {
  puts("  Flags from /build/gflags-2.2.2/src/gflags.cc:");
  puts("    -flagfile (load flags from file) type: string default: \\"\\"");
  puts("  Flags from tools/tiny_bench_tool.cc:");
  puts("    -num (Number of keys) type: int64 default: 1000");
  puts("    -use_direct_reads (Use O_DIRECT)");
  puts("      type: bool default: false");
}
"""

RECIPE: dict[str, Any] = {
    "commands": [["make", "-j{jobs}", "tiny_bench"]],
    "keep": ["tiny_bench", "make_config.mk"],
    "config_file": "make_config.mk",
    "features": {"zstd": "-DZSTD", "lz4": "-DLZ4", "snappy": "-DSNAPPY"},
    "forbid": {"a debug build": "DEBUG_LEVEL is [1-9]"},
    "count": "^  (CC|CCLD|AR) ",
}


def header(version: str) -> str:
    names = zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
    return "".join(f"#define TINY_{name} {number}\n" for name, number in names)


def tiny_tree(folder: Path, version: str = "1.2.3") -> Path:
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "version.h").write_text(header(version))
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "main.c").write_text(MAIN)
    (folder / "help.c").write_text(HELP)
    return folder


def tiny_engine(*sources: dict[str, Any], **recipe: Any) -> Engine:
    """The engine with sources, and a recipe that differs from the usual one where it is said."""
    return Engine.model_validate(
        {
            "name": "tiny",
            "title": "Tiny",
            "flags": "flags/tiny.json",
            "source": [{"version_file": "include/version.h", **source} for source in sources],
            "build": {**RECIPE, **recipe},
        }
    )


def git(repository: Path, *arguments: str) -> str:
    """Git with a person and a date, so that it commits anywhere."""
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def commit_version(repository: Path, version: str, message: str = "") -> str:
    """A commit that states a version; another one of the same version changes another file."""
    (repository / "include" / "version.h").write_text(header(version))
    (repository / "NEWS").write_text(f"{version} {message}\n")
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", f"{version} {message}")
    return git(repository, "rev-parse", "HEAD")


def tiny_repository(folder: Path) -> tuple[Path, dict[str, str]]:
    """Tags v1.0.0 (annotated) and rel-1.1.0, and the branch 1.2.fb without tags; its commits."""
    tiny_tree(folder, "1.0.0")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commits = {"1.0.0": commit_version(folder, "1.0.0")}
    git(folder, "tag", "-a", "-m", "release", "v1.0.0")
    commits["1.1.0"] = commit_version(folder, "1.1.0")
    git(folder, "tag", "rel-1.1.0")
    git(folder, "checkout", "--quiet", "-b", "1.2.fb")
    commits["1.2.0"] = commit_version(folder, "1.2.0")
    commits["1.2.1 first"] = commit_version(folder, "1.2.1", "first")
    (folder / "include" / "version.h").write_text(header("1.2.1") + "/* touched */\n")
    git(folder, "commit", "--quiet", "-am", "1.2.1 touched")
    commits["1.2.1 last"] = commit_version(folder, "1.2.1", "last")
    commits["1.2.2"] = commit_version(folder, "1.2.2")
    git(folder, "checkout", "--quiet", "main")
    commits["main"] = commit_version(folder, "1.3.0")
    return folder, commits
