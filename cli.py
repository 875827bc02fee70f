"""The command `penstock`; each subcommand is loaded when it is called."""

import click

from . import __version__


@click.group()
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """Run and look after a Penstock cluster."""
