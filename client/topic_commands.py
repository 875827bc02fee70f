"""`penstock topic …`: create, list, describe, alter and delete topics."""

import sys
from collections.abc import Sequence

import click
from confluent_kafka import KafkaError
from msgspec import to_builtins

from .assignments import parse_assignments
from .bootstrap import Bootstrap, bootstrap_options
from .operating.admin_options import admin_of
from .operating.topic_sizes import print_topic_sizes
from .options import json_option
from .positions import Edge
from .terminal import print_json, print_table, say
from .topic_completion import complete_topics
from .topics import BROKER_DEFAULT, Outcomes, PartitionState, TopicConfig, Topics, TopicState

_config_option = click.option(
    "--config",
    "-c",
    "configs",
    metavar="KEY=VALUE",
    multiple=True,
    callback=parse_assignments,
    help="A topic config by Kafka's name; may be repeated.",
)


@click.group()
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command()
@click.argument("names", metavar="TOPIC…", nargs=-1, required=True)
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="How many; the broker's num.partitions otherwise.")
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1, 32767),
    help="The broker's default.replication.factor otherwise.",
)
@_config_option
@click.option("--if-not-exists", is_flag=True, help="Leave topics alone that are there already.")
@json_option
@bootstrap_options
def create(
    bootstrap: Bootstrap,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    if_not_exists: bool,
    as_json: bool,
) -> None:
    """Create topics."""
    outcomes = Topics(bootstrap).create(
        names,
        partition_count=partitions or BROKER_DEFAULT,
        replication_factor=replication_factor or BROKER_DEFAULT,
        configs=configs,
    )
    let_pass = KafkaError.TOPIC_ALREADY_EXISTS if if_not_exists else None
    _report(bootstrap, outcomes, verb="created", let_pass=let_pass, as_json=as_json)


@topic.command("list")
@click.option("--internal", is_flag=True, help="Also those whose names begin with two underscores.")
@click.option("--sizes", is_flag=True, help="With records and bytes, the largest first (Penstock only).")
@click.option("--under-replicated", is_flag=True, help="Only partitions with replicas that are not in sync.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@json_option
@bootstrap_options
def list_(
    bootstrap: Bootstrap, internal: bool, sizes: bool, under_replicated: bool, unavailable: bool, as_json: bool
) -> None:
    """List all topics, or partitions that need to be looked after."""
    if sizes + under_replicated + unavailable > 1:
        raise click.UsageError("Give one of --sizes, --under-replicated and --unavailable.")
    if sizes:
        with admin_of(bootstrap) as admin:
            print_topic_sizes(admin, has_internal=internal, as_json=as_json)
        return
    if under_replicated or unavailable:
        # Internal topics, too: groups and transactions stand still without them.
        troubled = [
            (state.name, partition)
            for state in Topics(bootstrap).list()
            for partition in state.partitions
            if (partition.leader is None if unavailable else len(partition.isr) < len(partition.replicas))
        ]
        _print_partitions(troubled, as_json=as_json)
        return
    topics = [state for state in Topics(bootstrap).list() if internal or not state.is_internal]
    if as_json:
        print_json(
            {
                "topics": [
                    {
                        "name": state.name,
                        "partitions": len(state.partitions),
                        "replication_factor": state.replication_factor,
                    }
                    for state in topics
                ]
            }
        )
    elif topics:
        print_table(
            ("topic", "partitions", "replication factor"),
            ((state.name, len(state.partitions), state.replication_factor) for state in topics),
        )
    else:
        say("There are no topics.")


@topic.command()
@click.argument("names", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--all-configs", is_flag=True, help="Also the configs that were not set on the topic.")
@json_option
@bootstrap_options
def describe(bootstrap: Bootstrap, names: tuple[str, ...], all_configs: bool, as_json: bool) -> None:
    """Show partitions, leaders, replicas, offsets and configs of topics."""
    topics = Topics(bootstrap)
    described = []
    for state in topics.describe(names):
        led = [partition.partition for partition in state.partitions if partition.leader is not None]
        configs = [config for config in topics.configs(state.name) if all_configs or config.is_set_on_topic]
        starts = topics.offsets(state.name, led, Edge.EARLIEST)
        ends = topics.offsets(state.name, led, Edge.LATEST)
        described.append((state, configs, starts, ends))
    if as_json:
        print_json({"topics": [_as_json(*parts) for parts in described]})
        return
    for index, (state, configs, starts, ends) in enumerate(described):
        if index:
            click.echo()
        click.echo(f"topic {state.name}, id {state.topic_id}")
        for config in configs:
            click.echo(f"  {config.name}={config.value}" + ("" if config.is_set_on_topic else f"  ({config.source})"))
        print_table(
            ("partition", "leader", "replicas", "isr", "start offset", "end offset"),
            (
                (
                    partition.partition,
                    "none" if partition.leader is None else partition.leader,
                    partition.replicas,
                    partition.isr,
                    starts.get(partition.partition),
                    ends.get(partition.partition),
                )
                for partition in state.partitions
            ),
        )


@topic.command()
@click.argument("name", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="How many there are to be; only ever more.")
@_config_option
@click.option("--delete-config", "-d", "deleted", metavar="KEY", multiple=True, help="Back to the broker's value.")
@json_option
@bootstrap_options
def alter(
    bootstrap: Bootstrap,
    name: str,
    partitions: int | None,
    configs: dict[str, str],
    deleted: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add partitions to a topic, set and unset its configs."""
    if partitions is None and not configs and not deleted:
        raise click.UsageError("Nothing to alter: give --partitions, --config or --delete-config.")
    if both := sorted(configs.keys() & set(deleted)):
        raise click.UsageError(f"{both[0]} cannot be set and deleted at once.")
    topics = Topics(bootstrap)
    (state,) = topics.describe([name])
    if configs or deleted:
        topics.alter_configs(name, values=configs, deleted=deleted)
    if partitions is not None:
        topics.add_partitions(name, partitions)
    if as_json:
        print_json(
            {
                "topic": name,
                "partitions": partitions or len(state.partitions),
                "set": configs,
                "deleted": list(deleted),
            }
        )
    else:
        say(f"Altered topic {name}.")


@topic.command()
@click.argument("names", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@click.option("--if-exists", is_flag=True, help="Do not mind topics that are not there.")
@json_option
@bootstrap_options
def delete(bootstrap: Bootstrap, names: tuple[str, ...], yes: bool, if_exists: bool, as_json: bool) -> None:
    """Delete topics with all their records."""
    topics = Topics(bootstrap)
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(names)} with all records?", abort=True, err=True)
    let_pass = KafkaError.UNKNOWN_TOPIC_OR_PART if if_exists else None
    _report(bootstrap, topics.delete(names), verb="deleted", let_pass=let_pass, as_json=as_json)


def _print_partitions(found: Sequence[tuple[str, PartitionState]], *, as_json: bool) -> None:
    if as_json:
        print_json({"partitions": [{"topic": name, **to_builtins(partition)} for name, partition in found]})
    elif found:
        print_table(
            ("topic", "partition", "leader", "replicas", "isr"),
            (
                (name, one.partition, "none" if one.leader is None else one.leader, one.replicas, one.isr)
                for name, one in found
            ),
        )
    else:
        say("There are no such partitions.")


def _report(bootstrap: Bootstrap, outcomes: Outcomes, *, verb: str, let_pass: int | None, as_json: bool) -> None:
    """Says what was done to which topic; raises ClickException when something was not."""
    done = [name for name, error in outcomes.items() if error is None]
    failed = {name: error for name, error in outcomes.items() if error is not None and error.code() != let_pass}
    if as_json:
        print_json({verb: done, "failed": {name: bootstrap.sentence(error) for name, error in failed.items()}})
    elif done:
        say(f"{verb.capitalize()} {', '.join(done)}.")
    if failed:
        raise click.ClickException(
            "\n".join(f"Topic {name!r} was not {verb}: {bootstrap.sentence(error)}" for name, error in failed.items())
        )


def _as_json(
    state: TopicState, configs: list[TopicConfig], starts: dict[int, int | None], ends: dict[int, int | None]
) -> dict[str, object]:
    return {
        "name": state.name,
        "id": state.topic_id,
        "configs": {config.name: config.value for config in configs},
        "partitions": [
            {
                **to_builtins(partition),
                "start_offset": starts.get(partition.partition),
                "end_offset": ends.get(partition.partition),
            }
            for partition in state.partitions
        ],
    }
