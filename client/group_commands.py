"""`penstock group …`: list, describe, reset and delete consumer groups, and how far they are behind."""

import sys
from collections.abc import Sequence
from typing import TextIO

import click
from msgspec import to_builtins

from .bootstrap import Bootstrap, bootstrap_options
from .groups import EMPTY, Groups, GroupState, Lag, Place
from .offset_plan import Reset, chosen_places, plan_position, plan_shift, read_plan
from .options import json_option
from .position_option import position_option
from .positions import SYNTAX, Position
from .terminal import print_json, print_table, say


@click.group()
def group() -> None:
    """List, describe, reset and delete consumer groups."""


@group.command("list")
@json_option
@bootstrap_options
def list_(bootstrap: Bootstrap, as_json: bool) -> None:
    """List all groups."""
    groups = Groups(bootstrap).list()
    if as_json:
        print_json({"groups": [to_builtins(one) for one in groups]})
    elif groups:
        print_table(("group", "type", "state"), ((one.name, one.type.lower(), one.state.lower()) for one in groups))
    else:
        say("There are no groups.")


@group.command()
@click.argument("names", metavar="GROUP…", nargs=-1, required=True)
@json_option
@bootstrap_options
def describe(bootstrap: Bootstrap, names: tuple[str, ...], as_json: bool) -> None:
    """Show the members of groups, what each of them reads, and how far it is behind."""
    groups = Groups(bootstrap)
    described = [(state, groups.lag_of(state)) for state in groups.describe(names)]
    if as_json:
        print_json({"groups": [{**_group_as_json(state), **_lag_as_json(parts)} for state, parts in described]})
        return
    for number, (state, parts) in enumerate(described):
        if number:
            click.echo()
        assignor = f", assigned by {state.assignor}" if state.assignor else ""
        click.echo(f"group {state.name}, {state.type.lower()}, {state.state.lower()}{assignor}")
        click.echo(f"  coordinator {state.coordinator}")
        print_table(
            ("member", "instance", "client", "host", "partitions"),
            (
                (member.member_id, member.instance_id, member.client_id, member.host, _told(member.partitions))
                for member in state.members
            ),
        )
        click.echo(f"lag {_total(parts)}")
        _print_lag(parts)


@group.command()
@click.argument("names", metavar="GROUP…", nargs=-1, required=True)
@json_option
@bootstrap_options
def lag(bootstrap: Bootstrap, names: tuple[str, ...], as_json: bool) -> None:
    """Show how many records groups have yet to read."""
    groups = Groups(bootstrap)
    lags = {name: groups.lag(name) for name in dict.fromkeys(names)}
    if as_json:
        print_json(
            {
                "groups": [
                    {"name": name, "lag": _total(parts), "partitions": _parts_as_json(parts)}
                    for name, parts in lags.items()
                ]
            }
        )
        return
    for number, (name, parts) in enumerate(lags.items()):
        if number:
            click.echo()
        click.echo(f"group {name}, lag {_total(parts)}")
        _print_lag(parts)


def _print_lag(parts: Sequence[Lag]) -> None:
    print_table(
        ("topic", "partition", "committed", "end offset", "lag", "member"),
        ((part.topic, part.partition, part.committed, part.end_offset, part.records, part.member_id) for part in parts),
    )


def _lag_as_json(parts: Sequence[Lag]) -> dict[str, object]:
    return {"lag": _total(parts), "partitions": _parts_as_json(parts)}


def _parts_as_json(parts: Sequence[Lag]) -> list[dict[str, object]]:
    return [{**to_builtins(part), "lag": part.records} for part in parts]


@group.command("reset-offsets", epilog=f"A position is {SYNTAX}.")
@click.argument("name", metavar="GROUP")
@click.option("--to", "position", metavar="POSITION", callback=position_option, help="Where to go on.")
@click.option("--by", "shift", type=int, metavar="RECORDS", help="So many on, or back, from what was committed.")
@click.option("--from-file", "file", type=click.File(), help="Lines of topic,partition,offset; - is standard input.")
@click.option(
    "--topic", "-t", "topics", metavar="TOPIC[:PARTITION,…]", multiple=True, help="Only of this; may be repeated."
)
@click.option("--all-topics", is_flag=True, help="Of all that the group has committed.")
@click.option("--execute", is_flag=True, help="Do it. Without, it is only shown what would be done.")
@click.option("--csv", "as_csv", is_flag=True, help="Print lines for --from-file.")
@json_option
@bootstrap_options
def reset_offsets(
    bootstrap: Bootstrap,
    name: str,
    position: Position | None,
    shift: int | None,
    file: TextIO | None,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Let a group without members go on elsewhere. Shows first what would be done."""
    if sum((position is not None, shift is not None, file is not None)) != 1:
        raise click.UsageError("Give one of --to, --by and --from-file.")
    if file is None and bool(topics) == all_topics:
        raise click.UsageError("Give --topic or --all-topics.")
    if file is not None and (topics or all_topics):
        raise click.UsageError("--from-file says which topics.")
    groups = Groups(bootstrap)
    _check_empty(groups, name)
    committed = groups.committed(name)
    places = sorted(committed) if all_topics else chosen_places(groups, topics)
    if file is not None:
        planned = read_plan(file)
    elif position is not None:
        planned = plan_position(groups, places, position)
    else:
        assert shift is not None, "one of the three was given"
        planned = plan_shift(groups, {place: committed[place] for place in places if place in committed}, shift)
    resets = [
        Reset(topic=topic, partition=partition, committed=committed.get((topic, partition)), offset=offset)
        for (topic, partition), offset in sorted(planned.items())
    ]
    if execute and resets:
        groups.commit(name, planned)
    _report_resets(name, resets, is_done=execute, as_csv=as_csv, as_json=as_json)


@group.command()
@click.argument("names", metavar="GROUP…", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@json_option
@bootstrap_options
def delete(bootstrap: Bootstrap, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete groups without members, with all their offsets."""
    groups = Groups(bootstrap)
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(names)} with all offsets?", abort=True, err=True)
    outcomes = groups.delete(names)
    done = [name for name, error in outcomes.items() if error is None]
    failed = {name: bootstrap.sentence(error) for name, error in outcomes.items() if error is not None}
    if as_json:
        print_json({"deleted": done, "failed": failed})
    elif done:
        say(f"Deleted {', '.join(done)}.")
    if failed:
        raise click.ClickException(
            "\n".join(f"Group {name!r} was not deleted: {sentence}" for name, sentence in failed.items())
        )


def _check_empty(groups: Groups, name: str) -> None:
    """Raises ClickException when the group has members: they would not hear of it, and commit over it."""
    for listed in groups.list():
        if listed.name == name and listed.state != EMPTY:
            raise click.ClickException(
                f"Group {name!r} is {listed.state.lower()}; its offsets can be reset when all its members are gone."
            )


def _report_resets(name: str, resets: list[Reset], *, is_done: bool, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": name, "executed": is_done, "offsets": [to_builtins(reset) for reset in resets]})
    elif as_csv:
        for reset in resets:
            click.echo(f"{reset.topic},{reset.partition},{reset.offset}")
    else:
        print_table(
            ("topic", "partition", "committed", "new offset"),
            ((reset.topic, reset.partition, reset.committed, reset.offset) for reset in resets),
        )
    if not resets:
        say("There is nothing to reset.")
    elif is_done:
        say(f"Reset {len(resets)} offsets of group {name}.")
    else:
        say("Nothing was changed; --execute does it.")


def _group_as_json(state: GroupState) -> dict[str, object]:
    return {
        **to_builtins(state),
        "members": [
            {
                **to_builtins(member),
                "partitions": [{"topic": topic, "partition": partition} for topic, partition in member.partitions],
            }
            for member in state.members
        ],
    }


def _total(lags: Sequence[Lag]) -> int:
    return sum(part.records or 0 for part in lags)


def _told(places: tuple[Place, ...]) -> str | None:
    """Partitions by topic: `flights:0,2 weather:1`."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()) or None
