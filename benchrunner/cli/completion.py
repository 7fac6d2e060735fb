"""``benchrunner completion SHELL``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from benchrunner.cli.options import verb


@verb(
    'eval "$(benchrunner completion bash)"   # in ~/.bashrc',
    "benchrunner completion fish > ~/.config/fish/completions/benchrunner.fish",
    name="completion",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; evaluate it in the shell's start-up file."""
    completion = get_completion_class(shell)
    if completion is None:
        ctx.fail(f"click has no completion for {shell}")
    root = ctx.find_root().command
    click.echo(completion(root, {}, "benchrunner", "_BENCHRUNNER_COMPLETE").source())
