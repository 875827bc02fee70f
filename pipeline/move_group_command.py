"""`penstock pipeline move-group`: consumer groups of a mirror's source go on in its sink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ..client.assignments import parse_assignments
from ..client.bootstrap import ENVIRONMENT_VARIABLE
from ..client.terminal import print_table
from .config_reading import ConfigError, read_config, text_of


@click.command("move-group")
@click.argument("groups", nargs=-1, required=True, metavar="GROUP…")
@click.option("--bootstrap", "-b", envvar=ENVIRONMENT_VARIABLE, metavar="HOST:PORT,…", help="The mirror's source.")
@click.option("--config", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The mirror's.")
@click.option(
    "--set", "assignments", multiple=True, callback=parse_assignments, metavar="KEY=VALUE", help="One of its options."
)
def move_group(
    groups: tuple[str, ...], bootstrap: str | None, file: Path | None, assignments: Mapping[str, str]
) -> None:
    """Translate what consumer groups have committed in a mirror's source, and commit it in its sink.

    Stop the consumers first, and let the mirror copy what is left: a group then reads about a hundred records of a
    partition again at most. Offsets that a group has committed in the sink itself are never set back.
    """
    from .connector.errors import RequestError
    from .jobs.mirror import MirrorConfig, copy_settings
    from .mirroring.errors import MirrorError
    from .mirroring.group_mover import move_group as move
    from .mirroring.sink_map import SinkMap

    given = {"checkpoint": "none", **({"bootstrap": bootstrap} if bootstrap else {}), **assignments}
    rows, is_complete = [], True
    try:
        settings = copy_settings(read_config(MirrorConfig, text=text_of(file), assignments=given))
        sink_map = SinkMap(settings.sink, settings.map_topic, settings.choice.replication_factor)
        sink_map.follow(is_first_batch=False)
        for group in groups:
            found = move(group, settings.sources, settings.sink, sink_map.found)
            rows += [(group, topic, str(number), str(offset)) for (topic, number), offset in found.committed.items()]
            if found.is_active:
                click.echo(f"group {group} has members in the sink: nothing was committed", err=True)
                is_complete = False
            for partition in found.not_copied:
                click.echo(f"group {group}: nothing of {partition} is in the sink yet", err=True)
    except (ConfigError, MirrorError, RequestError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    print_table(("group", "topic", "partition", "offset in the sink"), rows)
    raise SystemExit(0 if is_complete else 1)
