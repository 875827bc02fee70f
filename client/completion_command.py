"""`penstock completion`: the script that makes a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in a shell.

    \b
    bash:  eval "$(penstock completion bash)"      in ~/.bashrc
    zsh:   eval "$(penstock completion zsh)"       in ~/.zshrc
    fish:  penstock completion fish | source       in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click completes all three shells"
    click.echo(kind(context.find_root().command, {}, "penstock", "_PENSTOCK_COMPLETE").source())
