"""The command line: parses options and calls one function of the pipeline.

Only ``click`` is imported here, and a verb's module when the verb is used: ``--help`` is instant.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
from typing import Any

import click

from benchrunner.errors import EXIT_INTERRUPTED, BenchrunnerError, ResultsDiskFullError

VERBS = {
    "sweep": "Build, run, parse and report versions x variants of a workload.",
    "plan": "Show what a sweep would do: jobs, loads, disk, time. Runs nothing.",
    "resume": "Go on with sweeps that were interrupted; loses and repeats nothing.",
    "status": "Show sweeps and where their trials stand.",
    "report": "Write the page of a workload as wiki, markdown, html, csv.",
    "parse": "Read stored raw output again, after a parser improved.",
    "read": "Understand any output file of a tool, without a store.",
    "versions": "List the versions of an engine that can be had, and from where.",
    "build": "Build versions of an engine into the cache.",
    "explain": "Print the definition of a metric.",
    "list": "List workloads, engines, tools, hosts, metrics or sweeps.",
    "hosts": "List, show, check, trust, restore and clean the hosts of the inventory.",
    "doctor": "Check this machine and print the command that mends each gap.",
    "completion": "Print the shell completion script.",
}


class Verbs(click.Group):
    """Loads a verb's module only when the verb is called; its help line is in ``VERBS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of a session."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            _unknown_verb(ctx, cmd_name)
        module = importlib.import_module(f"benchrunner.cli.{cmd_name}")
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"benchrunner.cli.{cmd_name}.command is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs and their help lines, without importing one of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _unknown_verb(ctx: click.Context, name: str) -> None:
    import difflib

    near = difflib.get_close_matches(name, VERBS, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    ctx.fail(f"There is no verb '{name}'.{hint}")


def _print_version(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"benchrunner {version('benchrunner')}")
    ctx.exit()


EPILOG = """\b
Examples:
  benchrunner doctor
  benchrunner plan  rocksdb-flash --versions 6.11.4,7.2.2 --scale smoke
  benchrunner sweep rocksdb-flash --versions 6.11.4,7.2.2 --variants None,DIO --scale smoke
  benchrunner sweep rocksdb-flash --versions 6.10..7.2
  benchrunner resume
  benchrunner read db_bench OLD.log --json

Exit codes: 0 ok, 1 a trial failed, 2 bad configuration, 3 nothing selected, 130 interrupted."""


@click.group(
    cls=Verbs,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, *, debug: bool) -> None:
    """Build, run and compare native storage benchmarks across engine versions."""
    ctx.obj = {"debug": debug}


def main() -> None:
    """Entry point: one line for every expected failure, an exit code for every outcome."""
    # Imports make many objects that stay: looking for garbage among them takes a fifth of `status`.
    gc.set_threshold(100_000, 50, 50)
    # Whoever ends this process politely gets what Ctrl-C gets: the step ended, its trial resumable.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    debug = "--debug" in sys.argv[1:3]
    try:
        status = cli.main(prog_name="benchrunner", standalone_mode=False)
    except click.exceptions.Exit as exit_request:
        status = exit_request.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        status = EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except (BenchrunnerError, OSError) as error:
        if debug:
            raise
        status = _explain(error)
    sys.exit(status if isinstance(status, int) else 0)


def _explain(error: BenchrunnerError | OSError) -> int:
    """One line about what failed and one about what to try; returns the exit code."""
    if isinstance(error, OSError):
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise error
        where = error.filename or "the results"
        hint = "free some space, then benchrunner resume"
        error = ResultsDiskFullError(f"no space is left for {where}", hint)
    click.echo(f"error: {error.message}", err=True)
    if error.hint:
        click.echo(f"  try: {error.hint}", err=True)
    return error.exit_code
