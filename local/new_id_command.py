"""`penstock cluster new-id`: the id of a new cluster."""

import click

from ..client.terminal import print_json
from .cluster_options import json_option
from .quorum_settings import new_cluster_id


@click.command("new-id")
@json_option
def new_id(as_json: bool) -> None:
    """Draw the id of a new cluster, in Kafka's form: the value of cluster.id, the same on all its nodes."""
    drawn = new_cluster_id()
    if as_json:
        print_json({"cluster_id": drawn})
    else:
        click.echo(drawn)
