"""`penstock elect`: leaders elected on request (KIP-460)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from ...protocol.rest.elections import ElectionRequest
from ..terminal import print_json, say
from .admin_options import admin_options, check_quorum, json_option
from .partition_names import check_outcomes, parse_partitions

if TYPE_CHECKING:
    from ..admin import Admin


@click.command()
@click.argument("names", metavar="[TOPIC[:PARTITION]…]", nargs=-1)
@click.option("--preferred", is_flag=True, help="The first replica of each partition, where it is in sync.")
@click.option(
    "--unclean", is_flag=True, help="Any live replica, where none in sync is left: acknowledged records may be lost."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@json_option
@admin_options
def elect(admin: Admin, names: tuple[str, ...], preferred: bool, unclean: bool, yes: bool, as_json: bool) -> None:
    """Elect leaders of these partitions, or of all where it is needed."""
    if preferred == unclean:
        raise click.UsageError("Give either --preferred or --unclean.")
    named = parse_partitions(names)
    if unclean and not yes and sys.stdin.isatty():
        which = ", ".join(names) or "all partitions without a leader"
        click.confirm(f"Elect unclean leaders of {which}, and lose what they lack?", abort=True, err=True)
    check_quorum(admin)
    result = admin.elect_leaders(
        ElectionRequest(
            type="unclean" if unclean else "preferred",
            topics=named.topics or None,
            partitions=named.partitions or None,
        )
    )
    refused = [one for one in result.results if one.error_code and one.error != "ELECTION_NOT_NEEDED"]
    if as_json:
        print_json(msgspec.to_builtins(result))
    elif result.elected_count or not refused:
        partitions = "partition" if result.elected_count == 1 else "partitions"
        say(
            f"Elected leaders of {result.elected_count:,} {partitions}."
            if result.elected_count
            else "No election was needed."
        )
    check_outcomes(refused, what="elected")
