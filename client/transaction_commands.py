"""`penstock transactions …`: look at transactions, and end those that hang."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
from msgspec import to_builtins

from ..protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from .bootstrap import Bootstrap, bootstrap_options
from .clock import now_ms
from .options import json_option
from .terminal import print_json, print_table, say
from .transactions import Cluster, OpenTransaction, TransactionDescription, open_cluster

T = TypeVar("T")

_topic_option = click.option("--topic", "-t", metavar="TOPIC")
_partition_option = click.option("--partition", "-p", type=click.IntRange(0))


@click.group()
def transactions() -> None:
    """List, describe and abort transactions, and find those that hang."""


@transactions.command("list")
@click.option("--state", "-s", "states", multiple=True, help="Only those in this state; may be repeated.")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Only of this one; may be repeated.")
@click.option("--running-longer-ms", "duration_ms", type=int, default=-1, help="Only those that began before that.")
@click.option("--pattern", help="Only ids that match this regular expression as a whole.")
@json_option
@bootstrap_options
def list_(
    bootstrap: Bootstrap,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_ms: int,
    pattern: str | None,
    as_json: bool,
) -> None:
    """List all transactional ids."""
    found = _ask(
        bootstrap,
        lambda cluster: cluster.list_all(
            states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
        ),
    )
    if as_json:
        print_json({"transactions": [to_builtins(one) for one in found]})
    elif found:
        print_table(
            ("transactional id", "coordinator", "producer id", "state"),
            ((one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found),
        )
    else:
        say("There are no such transactions.")


@transactions.command()
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@json_option
@bootstrap_options
def describe(bootstrap: Bootstrap, names: tuple[str, ...], as_json: bool) -> None:
    """Show how the transactions of transactional ids stand."""

    async def ask(cluster: Cluster) -> list[TransactionDescription]:
        return [await _described(cluster, name) for name in dict.fromkeys(names)]

    found = _ask(bootstrap, ask)
    if as_json:
        print_json(
            {
                "transactions": [
                    {
                        **to_builtins(one),
                        "partitions": [{"topic": topic, "partition": partition} for topic, partition in one.partitions],
                    }
                    for one in found
                ]
            }
        )
        return
    seen_ms = now_ms()
    print_table(
        ("transactional id", "coordinator", "producer id", "epoch", "state", "timeout (ms)", "runs (ms)", "partitions"),
        (
            (
                one.transactional_id,
                one.coordinator,
                one.producer_id,
                one.producer_epoch,
                one.state,
                one.timeout_ms,
                None if one.started_ms is None else seen_ms - one.started_ms,
                " ".join(f"{topic}-{partition}" for topic, partition in one.partitions) or None,
            )
            for one in found
        ),
    )


async def _described(cluster: Cluster, name: str) -> TransactionDescription:
    try:
        return await cluster.describe(name)
    except KafkaError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise click.ClickException(f"Transactional id {name!r} does not exist on {cluster.bootstrap}.") from error
        raise


@transactions.command()
@click.option("--topic", "-t", required=True, metavar="TOPIC")
@click.option("--partition", "-p", type=click.IntRange(0), required=True)
@click.option("--start-offset", type=click.IntRange(0), required=True, help="Where the transaction begins there.")
@json_option
@bootstrap_options
def abort(bootstrap: Bootstrap, topic: str, partition: int, start_offset: int, as_json: bool) -> None:
    """Abort a transaction in one partition, without its coordinator; `find-hanging` finds them."""

    async def ask(cluster: Cluster) -> OpenTransaction:
        leaders = await cluster.leaders([topic])
        leader = leaders.get((topic, partition))
        if leader is None:
            raise click.ClickException(f"Partition {topic}-{partition} does not exist or has no leader.")
        for one in await cluster.open_transactions({(topic, partition): leader}):
            if one.start_offset == start_offset:
                await cluster.abort(one, leader)
                return one
        raise click.ClickException(f"No transaction begins at offset {start_offset} of {topic}-{partition}.")

    aborted = _ask(bootstrap, ask)
    if as_json:
        print_json({"aborted": to_builtins(aborted)})
    else:
        say(f"Aborted the transaction of producer {aborted.producer_id} in {topic}-{partition}.")


@transactions.command("find-hanging")
@click.option("--broker", "broker_id", type=int, help="Only where this broker leads.")
@_topic_option
@_partition_option
@click.option(
    "--running-longer-ms",
    "duration_ms",
    type=click.IntRange(0),
    default=900_000,
    show_default=True,
    help="Only where nothing was written for that long: transaction.max.timeout.ms.",
)
@json_option
@bootstrap_options
def find_hanging(
    bootstrap: Bootstrap,
    broker_id: int | None,
    topic: str | None,
    partition: int | None,
    duration_ms: int,
    as_json: bool,
) -> None:
    """Find transactions that are open in a partition and that no coordinator knows: they hang."""
    if partition is not None and topic is None:
        raise click.UsageError("--partition is one of a --topic.")
    seen_ms = now_ms()

    async def ask(cluster: Cluster) -> list[OpenTransaction]:
        leaders = await cluster.leaders(None if topic is None else [topic], broker_id)
        if partition is not None:
            leaders = {place: leader for place, leader in leaders.items() if place[1] == partition}
        found = await cluster.open_transactions(leaders)
        return await cluster.hanging(one for one in found if seen_ms - one.last_written_ms >= duration_ms)

    hanging = _ask(bootstrap, ask)
    if as_json:
        print_json({"hanging": [to_builtins(one) for one in hanging]})
    elif hanging:
        print_table(
            ("topic", "partition", "producer id", "epoch", "coordinator epoch", "start offset", "silent (ms)"),
            (
                (
                    one.topic,
                    one.partition,
                    one.producer_id,
                    one.producer_epoch,
                    one.coordinator_epoch,
                    one.start_offset,
                    seen_ms - one.last_written_ms,
                )
                for one in hanging
            ),
        )
    else:
        say("No transaction hangs.")


def _ask(bootstrap: Bootstrap, ask: Callable[[Cluster], Awaitable[T]]) -> T:
    """Raises ClickException."""

    async def run() -> T:
        async with open_cluster(bootstrap) as cluster:
            return await ask(cluster)

    bootstrap.check_reachable()
    try:
        return asyncio.run(run())
    except KafkaError as error:
        sentence = (error.message or error_info(error.code).sentence).rstrip(".")
        raise click.ClickException(f"{sentence} ({error.code.name}).") from error
    except (CorruptData, OSError) as error:
        message = str(error)
        raise click.ClickException(f"{message[:1].upper()}{message[1:].rstrip('.')}.") from error
