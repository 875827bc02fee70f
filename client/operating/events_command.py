"""`penstock events`: what happened in the cluster, and what happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from ..terminal import print_json
from .admin_options import admin_options, json_option
from .event_lines import event_line, read_events

if TYPE_CHECKING:
    from ..admin import Admin

SILENCE_MAX_S: Final = 40.0
"""A node sends a comment every 15 s."""


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--since", metavar="ID", help="Only those behind the event of this id.")
@json_option
@admin_options
def events(admin: Admin, follow: bool, since: str | None, as_json: bool) -> None:
    """Print events of the cluster: those that nodes remember, oldest first.

    Ids are the same on every node. With --json, an object a line.
    """
    found = remembered(admin, since)
    if follow:
        found = _then_followed(admin, since, found)
    for event in found:
        if as_json:
            print_json(event)
        else:
            click.echo(event_line(event))


def remembered(admin: Admin, since: str | None) -> Iterator[dict[str, Any]]:
    """Behind that event, or all. Raises AdminError."""
    return read_events(admin.follow_events(since=since, follow=False))


def _then_followed(admin: Admin, since: str | None, found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    last_id = since
    for event in found:
        last_id = event["id"]
        yield event
    from ..admin import Admin, AdminUnreachable

    with Admin(admin.addresses, timeout_s=SILENCE_MAX_S, credentials=admin.credentials) as patient:
        while True:
            is_connected = False
            try:
                for line in patient.follow_events(since=last_id):
                    is_connected = True
                    for event in read_events((line,)):
                        last_id = event["id"]
                        yield event
            except AdminUnreachable:
                # The node is gone: another one goes on behind the same id.
                if not is_connected:
                    raise
            else:
                if not is_connected:
                    raise AdminUnreachable("The node ended the stream of events at once.")
