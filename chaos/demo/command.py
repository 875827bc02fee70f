"""`penstock demo`: a cluster, real records through a real client, proof that they came back, and the loss of a node."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from ...client import clock
from ...client.addresses import parse_addresses
from ...client.bootstrap import Bootstrap
from ...client.terminal import print_json, print_table
from ...client.topics import Topics
from ...client.units import format_bytes, format_count, format_records, format_seconds
from ...local.cluster import LocalCluster
from ...local.cluster_options import folder_option_with, sentences
from ...local.cluster_record import FILE_NAME
from ...local.errors import PortInUseError
from ...local.foreground import look_after, stop_signals_interrupt, stop_signals_request
from ...local.ports import check_free
from .dataset import DatasetMissingError, find_tables
from .leader_loss import TOPIC, LeaderLoss, lose_leader
from .sources import SOURCES, Source
from .stream import ReadBack, Streamed, read_back, stream

_FOLDER: Final = "penstock-demo"
# Where every Kafka client looks first; when the port is in use, any other will do.
_FAVOURITE_PORT: Final = 9092
_NODE_COUNT: Final = 3


class _Outcome(Struct, frozen=True, kw_only=True):
    source: Source
    streamed: Streamed
    read: ReadBack


@click.command()
@click.option("--once", is_flag=True, help="End by itself: 0 when everything came back, 1 otherwise.")
@folder_option_with(_FOLDER)
@click.option("--bootstrap", metavar="HOST:PORT,…", help="Use this cluster instead of starting one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def demo(once: bool, folder: Path, bootstrap: str | None, as_json: bool) -> None:
    """Stream a year of flights out of New York through three nodes and read it back; then kill a leader.

    The cluster stays up until Ctrl-C. Its folder is emptied at the next start.
    """
    try:
        tables = find_tables()
    except DatasetMissingError as error:
        raise click.ClickException(str(error)) from error
    talk = _Talk(is_silent=as_json)
    with sentences(), stop_signals_interrupt():
        if bootstrap is not None:
            _show_all(_bootstrap_of(bootstrap), tables, None, talk, stays_up=True)
            return
        with _own_cluster(folder, talk) as cluster:
            _show_all(_bootstrap_of(cluster.bootstrap), tables, cluster, talk, stays_up=not once)
            if not once:
                with stop_signals_request() as request:
                    talk.say("")
                    talk.say("The cluster is up; Ctrl-C stops it.")
                    look_after(cluster, request)


def _show_all(
    bootstrap: Bootstrap, tables: Path, cluster: LocalCluster | None, talk: "_Talk", *, stays_up: bool
) -> None:
    """`cluster` is one's own, in which nodes may be killed. Raises ClickException when anything is missing or not as it
    was sent."""
    with bootstrap.sentences():
        _create_topics(bootstrap, talk)
        outcomes = []
        for source in SOURCES:
            streamed = stream(bootstrap, source, tables)
            talk.done(f"sent {source.topic}: {_rate(streamed.ledger.record_count, streamed.seconds)}")
            outcomes.append((source, streamed))
        results = []
        for source, streamed in outcomes:
            read = read_back(bootstrap, source, streamed)
            talk.done(f"read {source.topic}: {_rate(read.record_count, read.seconds)}", is_well=not read.findings)
            results.append(_Outcome(source=source, streamed=streamed, read=read))
        loss = None if cluster is None else lose_leader(cluster, Topics(bootstrap))
    findings = [f"{result.source.topic}: {finding}" for result in results for finding in result.read.findings]
    if loss is not None:
        findings += [f"{TOPIC}: {finding}" for finding in loss.findings]
    if talk.is_silent:
        description = {} if cluster is None else cluster.description()
        told = {} if loss is None else {"leader_loss": _loss_as_json(loss)}
        topics = [_as_json(result) for result in results]
        print_json({**description, "topics": topics, **told, "findings": findings})
    else:
        _show_results(bootstrap, results)
    if findings:
        raise click.ClickException("Not everything came back as it was sent.\n" + "\n".join(findings))
    talk.done("every record came back once, unchanged, in the order of its key; no offset is missing")
    if loss is not None:
        talk.done(
            f"node {loss.lost_id} was killed while it led {TOPIC}-0: node {loss.successor_id} led it after"
            f" {_milliseconds(loss.leaderless_s)} ms; the producer, which looks for leaders once a second, had its next"
            f" acknowledgement after {_milliseconds(loss.gap_s)} ms (usual: {_milliseconds(loss.usual_s)} ms)"
        )
        talk.done(
            f"all of {format_count(loss.acknowledged_count)} acknowledged records are there, and node {loss.lost_id} is"
            " back"
        )
    if stays_up:
        talk.say("")
        for line in _where_to_look(bootstrap):
            talk.say(line)


def _create_topics(bootstrap: Bootstrap, talk: "_Talk") -> None:
    topics = Topics(bootstrap)
    for source in SOURCES:
        outcomes = topics.create([source.topic], partition_count=source.partition_count, configs=source.configs)
        for error in outcomes.values():
            if error is not None:
                raise click.ClickException(f"Topic {source.topic} was not created: {bootstrap.sentence(error)}")
    talk.done(f"created topics {', '.join(source.topic for source in SOURCES)}")


def _show_results(bootstrap: Bootstrap, results: list[_Outcome]) -> None:
    click.echo()
    click.echo(click.style("Bootstrap address: ", bold=True) + str(bootstrap))
    click.echo()
    print_table(
        ("topic", "partition", "records", "offsets", "keys in topic", "policy"),
        (
            (
                result.source.topic,
                partition,
                format_count(placed.count if placed is not None else 0),
                "none" if placed is None else f"{placed.first}..{placed.last}",
                format_count(result.streamed.ledger.key_count),
                result.source.configs.get("cleanup.policy", "keep forever"),
            )
            for result in results
            for partition in range(result.source.partition_count)
            for placed in [result.streamed.partitions.get(partition)]
        ),
    )
    click.echo()
    print_table(
        ("topic", "records", "size", "sent/s", "read/s"),
        (
            (
                result.source.topic,
                format_count(result.read.record_count),
                format_bytes(result.streamed.size_bytes),
                _per_second(result.streamed.ledger.record_count, result.streamed.seconds),
                _per_second(result.read.record_count, result.read.seconds),
            )
            for result in results
        ),
    )
    click.echo()


def _where_to_look(bootstrap: Bootstrap) -> Iterator[str]:
    command = _command()
    where = "" if str(bootstrap) == f"127.0.0.1:{_FAVOURITE_PORT}" else f" -b {bootstrap}"
    yield click.style("Where to look next", bold=True)
    yield f"  {command} topic list{where}"
    yield f"  {command} topic describe flights{where}"
    yield f"  {command} consume flights --from -3 --show time,key,value{where}"
    yield f"  {command} consume weather --from 2013-07-04 --to 2013-07-05 --json{where}"
    yield f"  {command} consume planes -n 5 --format '{{key}} is {{value}}'{where}"
    yield f"  or any Kafka client with bootstrap.servers={bootstrap}"


@contextmanager
def _own_cluster(folder: Path, talk: "_Talk") -> Iterator[LocalCluster]:
    """A new cluster on embedded defaults in an empty folder. At the end it is stopped; its folder stays."""
    _empty(folder)
    cluster = LocalCluster(folder, node_count=_NODE_COUNT, first_port=_port())
    started_s = clock.monotonic_s()
    cluster.start()
    try:
        talk.done(
            f"{len(cluster.nodes)} nodes up in {format_seconds(clock.monotonic_s() - started_s)}: {cluster.bootstrap},"
            f" data in {folder}"
        )
        yield cluster
    finally:
        if cluster.is_running:
            cluster.stop()


def _empty(folder: Path) -> None:
    """Removes what an earlier demo left, and nothing that is not one's own."""
    earlier = LocalCluster.attach(folder)
    if earlier is not None:
        earlier.stop()
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise click.ClickException(f"{folder} is not empty and has no {FILE_NAME}, so it is not the demo's to empty.")


def _port() -> int:
    try:
        for index in range(_NODE_COUNT):
            check_free(_FAVOURITE_PORT + index)
    except PortInUseError:
        return 0
    return _FAVOURITE_PORT


def _bootstrap_of(text: str) -> Bootstrap:
    try:
        return Bootstrap(addresses=parse_addresses(text), properties={})
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bootstrap") from error


def _command() -> str:
    """What to type so that this very program is called."""
    program = Path(sys.argv[0])
    return "penstock" if shutil.which("penstock") == str(program.absolute()) else os.path.relpath(program)


def _rate(count: int, seconds: float) -> str:
    return f"{format_records(count)} in {format_seconds(seconds)}, {_per_second(count, seconds)} records/s"


def _per_second(count: int, seconds: float) -> str:
    return format_count(round(count / max(seconds, 1e-9)))


def _milliseconds(seconds: float) -> str:
    return format_count(round(seconds * 1000))


def _loss_as_json(loss: LeaderLoss) -> dict[str, object]:
    return {
        "killed_node": loss.lost_id,
        "next_leader": loss.successor_id,
        "seconds_without_leader": round(loss.leaderless_s, 3),
        "seconds_without_acknowledgement": round(loss.gap_s, 3),
        "seconds_usual": round(loss.usual_s, 3),
        "acknowledged": loss.acknowledged_count,
    }


def _as_json(outcome: _Outcome) -> dict[str, object]:
    streamed, read = outcome.streamed, outcome.read
    return {
        "topic": outcome.source.topic,
        "records": read.record_count,
        "bytes": streamed.size_bytes,
        "keys": streamed.ledger.key_count,
        "seconds_sending": round(streamed.seconds, 3),
        "seconds_reading": round(read.seconds, 3),
        "partitions": {
            str(partition): {"records": placed.count, "first_offset": placed.first, "last_offset": placed.last}
            for partition, placed in sorted(streamed.partitions.items())
        },
    }


class _Talk(Struct, frozen=True, kw_only=True):
    """Says how far it is, unless a program listens."""

    is_silent: bool

    def done(self, what: str, *, is_well: bool = True) -> None:
        mark = click.style("✓", fg="green") if is_well else click.style("✗", fg="red")
        self.say(f"{mark} {what}")

    def say(self, line: str) -> None:
        if not self.is_silent:
            click.echo(line)
            sys.stdout.flush()
