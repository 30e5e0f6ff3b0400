"""``pyjmsack completion``: prints the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion of commands and options for SHELL.

    \b
    eval "$(pyjmsack completion bash)"                                         # in ~/.bashrc
    eval "$(pyjmsack completion zsh)"                                          # in ~/.zshrc
    pyjmsack completion fish > ~/.config/fish/completions/pyjmsack.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    click.echo(kind(ctx.find_root().command, {}, "pyjmsack", "_PYJMSACK_COMPLETE").source())
