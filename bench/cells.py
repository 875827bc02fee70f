"""What is measured: each cell is one load with its parameters, by a name that can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from ..protocol.structs import replace
from .clients.programs import PROGRAMS
from .crowds import HTTP_CROWDS
from .group_members import PROTOCOLS, Protocol
from .target import Target
from .workloads.authorizer import authorizer
from .workloads.client_failover import client_failover
from .workloads.client_memory import CLIENTS, client_memory
from .workloads.client_memory import PARTITIONS as CONSUMED_PARTITIONS
from .workloads.cluster_growth import cluster_growth
from .workloads.cluster_partitions import cluster_partitions
from .workloads.cold_reader import cold_reader
from .workloads.compaction import compaction
from .workloads.coordinator_load import coordinator_load
from .workloads.cores import cores
from .workloads.crowd import crowd
from .workloads.exposition import exposition
from .workloads.groups import MEMBERS, PARTITIONS, SMALL_GROUPS, groups
from .workloads.http_crowd import http_crowd
from .workloads.large_answers import large_answers
from .workloads.leader_failover import DEFAULTS, QUICK_TIMEOUTS, leader_failover
from .workloads.listing import listing
from .workloads.memory import memory
from .workloads.offset_commits import PARTITIONS as COMMITTED_PARTITIONS
from .workloads.offset_commits import offset_commits
from .workloads.partitions import partitions
from .workloads.pipeline_job import pipeline_job
from .workloads.prepared import prepared
from .workloads.quorum_commits import quorum_commits
from .workloads.quorum_failover import quorum_failover
from .workloads.quorum_fencing import quorum_fencing
from .workloads.quorum_image import quorum_image
from .workloads.quorum_quiet import quorum_quiet
from .workloads.quorum_topic import quorum_topic
from .workloads.quotas import quotas_others, quotas_settle, quotas_users
from .workloads.replicated_partitions import replicated_partitions
from .workloads.sasl import SCRAM, sasl
from .workloads.scraping import scraping
from .workloads.single import single
from .workloads.startup import startup
from .workloads.stream import stream
from .workloads.system_calls import system_calls
from .workloads.testing import testing
from .workloads.tiny import tiny
from .workloads.tls import tls
from .workloads.topic import topic
from .workloads.transactions import transactions

Values = Mapping[str, float | None]

SIZES: Final = {"100B": 100, "1KiB": 1024}
CROWD: Final = 2_000
CROWD_PRODUCERS: Final = 200
MANY_PARTITIONS: Final = 10_000
IMAGE_PARTITIONS: Final = 100_000
QUIET_MINUTES: Final = 10.0
HTTP_CROWD_PAIRS: Final = 3
SCRAPING_PAIRS: Final = 20
SCRAPED_REQUESTS: Final = 40_000
"""Some seconds of them."""
_QUICK_PART: Final = 4
"""A quick run does a fourth of each load."""


class Cell(Struct, frozen=True, kw_only=True):
    """One load. `name` is a path from the general to the special."""

    name: str
    title: str
    run: Callable[[Target], Values]
    needs_node: bool = False
    """Whether it starts a node of its own, or several, which is only possible here."""
    needs_cluster: bool = False
    """Whether it starts three nodes. Such a cell has no use for a target that runs."""
    is_replicated: bool = False
    """Whether it is a load of topics with three replicas, on three nodes that run."""
    needs_image: bool = False
    """Whether it writes the metadata of a cluster itself."""
    needs_http: bool = False
    """Whether it asks nodes over HTTP, or runs one in the measuring process. Such a cell starts a node of its own."""
    needs_tiers: bool = False
    """Whether its topics are in a tier."""
    needs_growth: bool = False
    """Whether it adds nodes to a running cluster."""
    is_extra: bool = False
    """Whether it is measured only when its name is given in full: it takes minutes."""
    is_particular: bool = False
    """Whether it is measured only when its name, or what it is below, is given: nothing is there to compare it with,
    or it starts a node of its own for a part of what a node does."""

    @property
    def starts_nodes(self) -> bool:
        """Whether it starts its own: what ran before is nothing to it."""
        return self.needs_node or self.needs_cluster or self.needs_http

    def is_possible(self, target: Target) -> bool:
        """Whether it can be measured on this target."""
        return (
            (not self.needs_node or target.fresh_node is not None)
            and (not self.needs_cluster or target.fresh_cluster is not None)
            and (not self.needs_http or target.has_http)
            and (not self.needs_tiers or target.has_tiers)
            and (not self.needs_growth or target.can_grow)
            and (not self.is_replicated or target.replicated is not None)
            and (not self.needs_image or target.add_partitions is not None)
        )


def cells(*, is_quick: bool, minutes: float = QUIET_MINUTES) -> tuple[Cell, ...]:
    """All of them, in the order in which they are measured. `minutes` is how long a cluster that is left alone is."""
    part = _QUICK_PART if is_quick else 1
    return (
        Cell(name="startup", title="a node started in an empty folder", run=startup, needs_node=True),
        *(
            _stream(size, batching, partitions, count // part)
            for size, batching, partitions, count in (
                ("1KiB", "default", 6, 400_000),
                ("1KiB", "large", 6, 400_000),
                ("1KiB", "lz4", 6, 400_000),
                ("1KiB", "default", 1, 400_000),
                ("1KiB", "default", 1000, 200_000),
                ("100B", "default", 6, 2_000_000),
                ("100B", "large", 6, 2_000_000),
                ("100B", "lz4", 6, 2_000_000),
                ("100B", "default", 1, 2_000_000),
                ("100B", "default", 1000, 1_000_000),
            )
        ),
        _prepared("1KiB", 500_000 // part),
        _prepared("100B", 5_000_000 // part),
        _single(4_000 // part),
        *(_tiny(in_flight, count // part) for in_flight, count in ((1, 20_000), (5, 40_000), (50, 60_000))),
        _transactions(400_000 // part, 200 // part),
        Cell(
            name="testing",
            title="tests of an application on three nodes",
            run=lambda target: testing(target, tests=80 // part),
            needs_node=True,
            needs_cluster=True,
            is_extra=True,
        ),
        *(_crowd(readers, 12 // part) for readers in (0, 50)),
        Cell(
            name="topic/1000",
            title="a topic of 1,000 partitions created",
            run=lambda target: topic(target, partitions=1000),
        ),
        _partitions(1000),
        _partitions(10_000),
        _partitions(MANY_PARTITIONS, is_written=True),
        Cell(
            name="partitions/cluster/50000",
            title="three nodes with 50,000 partitions, a record in each",
            run=lambda target: cluster_partitions(target, count=50_000 // part),
            needs_node=True,
            needs_cluster=True,
            is_extra=True,
        ),
        _quorum("commits", "changes of metadata", lambda target: quorum_commits(target, changes=4_000 // part)),
        _quorum(
            "failover",
            "the active controller killed, and paused",
            lambda target: quorum_failover(target, kills=20 // part, pauses=8 // part),
        ),
        _quorum("fencing", "a broker killed", lambda target: quorum_fencing(target, kills=20 // part)),
        _quorum(
            "topic",
            f"a topic of {MANY_PARTITIONS // part:,} partitions created",
            lambda target: quorum_topic(target, partitions=MANY_PARTITIONS // part),
        ),
        _quorum(
            "image",
            f"{IMAGE_PARTITIONS // part:,} partitions in the metadata",
            lambda target: quorum_image(target, partitions=IMAGE_PARTITIONS // part, kills=3),
            needs_image=True,
        ),
        _quiet("idle", minutes, is_busy=False),
        _quiet("busy", minutes, is_busy=True),
        *map(
            _replicated,
            (
                _stream("1KiB", "default", 6, 400_000 // part),
                _stream("100B", "default", 6, 2_000_000 // part),
                _prepared("1KiB", 500_000 // part),
                _prepared("100B", 5_000_000 // part),
                _single(4_000 // part),
                *(_idempotent(in_flight, 20_000 // part) for in_flight in (5, 50)),
                _transactions(200_000 // part, 200 // part),
            ),
        ),
        _calls(part),
        _replicated(_calls(part)),
        *(_offset_commits(in_flight, 20_000 // part) for in_flight in (1, 5, 50)),
        *(_groups(protocol, max(20 // part // 2, 3)) for protocol in PROTOCOLS),
        Cell(
            name="groups/load",
            title="coordinators load internal topics as large as a segment",
            run=lambda target: coordinator_load(target, size_mib=100 // part),
            needs_node=True,
            needs_http=True,
            is_extra=True,
        ),
        Cell(
            name="replication/growth",
            title="three nodes grow to five and shrink again while records are written",
            run=lambda target: cluster_growth(target, seconds=20.0 / part),
            needs_node=True,
            needs_cluster=True,
            needs_growth=True,
            is_extra=True,
        ),
        *(_http_crowd(name, 4 if is_quick else 8) for name in HTTP_CROWDS),
        _http(
            "http/exposition",
            f"metrics of {MANY_PARTITIONS // part:,} partitions",
            lambda target: exposition(target, partitions=MANY_PARTITIONS // part),
        ),
        _http(
            "http/listing",
            f"{MANY_PARTITIONS // part:,} partitions listed",
            lambda target: listing(target, partitions=MANY_PARTITIONS // part),
        ),
        Cell(
            name="large-answers",
            title=f"requests about each of {MANY_PARTITIONS // part:,} partitions",
            run=lambda target: large_answers(target, partitions=MANY_PARTITIONS // part),
            needs_node=True,
            needs_http=True,
            is_particular=True,
        ),
        _http(
            "http/scraping",
            "metrics read each second beside a load",
            lambda target: scraping(target, pairs=SCRAPING_PAIRS // part, requests=SCRAPED_REQUESTS),
        ),
        *(_compaction(size, records // part) for size, records in (("1KiB", 600_000), ("100B", 4_000_000))),
        Cell(
            name="cold-reader/local",
            title="records written and read at the end beside a reader of old ones",
            run=lambda target: cold_reader(target, size_gb=10.0 / part, seconds=20.0 / part),
            needs_node=True,
            is_extra=True,
        ),
        Cell(
            name="cold-reader/tier",
            title="the same beside a reader of what only the tier has",
            run=lambda target: cold_reader(target, size_gb=10.0 / part, seconds=20.0 / part, is_tiered=True),
            needs_node=True,
            needs_tiers=True,
            is_extra=True,
        ),
        Cell(
            name="quotas/settle",
            title="clients with quotas",
            run=lambda target: quotas_settle(target, windows=12 // part),
            needs_node=True,
            is_extra=True,
        ),
        Cell(
            name="quotas/others",
            title="records at a steady rate, beside clients with quotas",
            run=lambda target: quotas_others(target, rounds=8 // part),
            needs_node=True,
            is_extra=True,
        ),
        Cell(
            name="quotas/users",
            title="a thousand clients with quotas of their own",
            run=lambda target: quotas_users(target, users=1000 // part),
            needs_node=True,
            is_extra=True,
        ),
        Cell(
            name="authorizer",
            title="requests of one record, with an authorizer and without",
            run=lambda target: authorizer(target, requests=2000 // part),
            needs_node=True,
            is_particular=True,
        ),
        *(
            _tls(name, size, size_bytes, records // part, warm_up_records=records)
            for name, size, size_bytes, records in (
                ("10kB", "10 kB", 10_000, 80_000),
                ("1KiB", "1 KiB", 1024, 400_000),
                ("100B", "100 B", 100, 1_000_000),
            )
        ),
        *(
            _sasl(mechanism, 4_000 // part, is_tls=is_tls, warm_up_connections=4_000)
            for is_tls in (False, True)
            for mechanism in ("PLAIN", SCRAM)
        ),
        *(
            # A task of Spark's for each partition in each batch: with many, they are what takes the time. Each
            # sixteenth batch makes one file of many.
            _pipeline("lake", count, records, warm_up_batches=warm_up // part, batches=batches // part)
            for count, records, warm_up, batches in (
                (10, 40_000, 32, 32),
                (100, 40_000, 16, 16),
                (1000, 100_000, 10, 4),
            )
        ),
        *(_replicated_partitions(count) for count in (200, 500, 1000, 2000)),
        _failover("defaults", "at their defaults", DEFAULTS, 20 // part),
        _failover("quick", "with quick timeouts", QUICK_TIMEOUTS, 20 // part),
        *(_client_failover(library, 20 // part) for library in PROGRAMS),
        *(_cores(nodes, records=1_200_000 // part) for nodes in (1, 2, 4)),
        Cell(
            name="clients/memory",
            title=f"{CLIENTS // part:,} clients that each consume {CONSUMED_PARTITIONS} partitions",
            run=lambda target: client_memory(target, clients=CLIENTS // part),
            needs_node=True,
            is_extra=True,
        ),
        Cell(name="memory", title="memory after the load", run=memory),
    )


def chosen(all_cells: Sequence[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """Those whose name is, begins with, or matches one of the patterns; without any, the common ones."""
    return tuple(
        cell
        for cell in all_cells
        if cell.name in patterns
        or (
            not cell.is_extra
            and (
                (not patterns and not cell.is_particular)
                or any(cell.name.startswith(f"{pattern}/") or fnmatchcase(cell.name, pattern) for pattern in patterns)
            )
        )
    )


def warm_up(target: Target, *, is_quick: bool) -> None:
    """Enough of everything for a JVM to have compiled what is measured afterwards."""
    part = _QUICK_PART if is_quick else 1
    for _ in range(2):
        stream(target, size_bytes=1024, batching="default", partitions=6, records=300_000 // part)
        prepared(target, size_bytes=100, partitions=6, records=4_000_000 // part)
        tiny(target, in_flight=5, requests=40_000 // part)
        single(target, records=1_000 // part)


def _spaced(size: str) -> str:
    return size.replace("B", " B").replace("Ki B", " KiB")


def _stream(size: str, batching: str, partitions: int, records: int) -> Cell:
    def run(target: Target) -> Values:
        return stream(target, size_bytes=SIZES[size], batching=batching, partitions=partitions, records=records)

    plural = "1 partition" if partitions == 1 else f"{partitions:,} partitions"
    how = {"default": "default", "large": "large batches", "lz4": "lz4"}[batching]
    return Cell(name=f"stream/{size}/{batching}/{partitions}", title=f"{_spaced(size)}, {how}, {plural}", run=run)


def _prepared(size: str, records: int) -> Cell:
    def run(target: Target) -> Values:
        return prepared(target, size_bytes=SIZES[size], partitions=6, records=records)

    return Cell(name=f"prepared/{size}", title=f"{_spaced(size)}, prepared, 6 partitions", run=run)


def _single(records: int) -> Cell:
    return Cell(
        name="single", title="single records of 100 B, linger.ms=0", run=lambda target: single(target, records=records)
    )


def _calls(part: int) -> Cell:
    return Cell(
        name="calls",
        title="CPU and system calls of a request",
        run=lambda target: system_calls(target, part=part),
        is_extra=True,
    )


def _crowd(readers: int, seconds: int) -> Cell:
    def run(target: Target) -> Values:
        return crowd(target, clients=CROWD, producers=CROWD_PRODUCERS, readers=readers, seconds=seconds)

    also = f", {readers} read all" if readers else ""
    return Cell(name=f"crowd/{readers}", title=f"{CROWD:,} clients connected, {CROWD_PRODUCERS} produce{also}", run=run)


def _compaction(size: str, records: int) -> Cell:
    def run(target: Target) -> Values:
        return compaction(target, size_bytes=SIZES[size], records=records, singles=2_000)

    return Cell(
        name=f"compaction/{size}",
        title=f"a log of {records:,} records of {_spaced(size)} compacted",
        run=run,
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _http_crowd(name: str, seconds: int) -> Cell:
    def run(target: Target) -> Values:
        return http_crowd(
            target, name=name, clients=CROWD, producers=CROWD_PRODUCERS, pairs=HTTP_CROWD_PAIRS, seconds=seconds
        )

    title = f"{CROWD:,} clients connected, {CROWD_PRODUCERS} produce, beside {HTTP_CROWDS[name]:,} of HTTP: {name}"
    return _http(f"crowd/http/{name}", title, run)


def _http(name: str, title: str, run: Callable[[Target], Values]) -> Cell:
    return Cell(name=name, title=title, run=run, needs_node=True, needs_http=True, is_particular=True)


def _tls(name: str, size: str, size_bytes: int, records: int, *, warm_up_records: int) -> Cell:
    return Cell(
        name=f"tls/{name}",
        title=f"{size}, 1 partition, with TLS and without",
        run=lambda target: tls(target, size_bytes=size_bytes, records=records, warm_up_records=warm_up_records),
        needs_node=True,
        is_particular=True,
    )


def _pipeline(job: str, partitions: int, batch_records: int, *, warm_up_batches: int, batches: int) -> Cell:
    return Cell(
        name=f"pipeline/{job}/{partitions}",
        title=f"the job {job} on Spark, 1 KiB, {partitions:,} partitions",
        run=lambda target: pipeline_job(
            target,
            job=job,
            partitions=partitions,
            batch_records=batch_records,
            warm_up_batches=warm_up_batches,
            batches=batches,
        ),
        is_particular=True,
    )


def _sasl(mechanism: str, connections: int, *, is_tls: bool, warm_up_connections: int) -> Cell:
    how = f"{mechanism}{' inside TLS' if is_tls else ''}"
    return Cell(
        name=f"sasl/{'tls' if is_tls else 'plaintext'}/{mechanism}",
        title=f"new connections with SASL: {how}",
        run=lambda target: sasl(
            target,
            mechanism=mechanism,
            connections=connections,
            warm_up_connections=warm_up_connections,
            is_tls=is_tls,
        ),
        needs_node=True,
        is_particular=True,
    )


def _partitions(count: int, *, is_written: bool = False) -> Cell:
    return Cell(
        name=f"partitions/{count}/written" if is_written else f"partitions/{count}",
        title=f"a node with {count:,} partitions{', a record in each' if is_written else ''}",
        run=lambda target: partitions(target, count=count, is_written=is_written),
        needs_node=True,
        is_extra=count > 1000,
    )


def _quorum(name: str, title: str, run: Callable[[Target], Values], *, needs_image: bool = False) -> Cell:
    return Cell(
        name=f"quorum/{name}",
        title=f"three controllers: {title}",
        run=run,
        needs_node=True,
        needs_cluster=True,
        needs_image=needs_image,
    )


def _quiet(name: str, minutes: float, *, is_busy: bool) -> Cell:
    how = "on a machine at full load" if is_busy else "idle"
    return Cell(
        name=f"quorum/{name}",
        title=f"three controllers: {minutes:g} minutes {how}",
        run=lambda target: quorum_quiet(target, minutes=minutes, is_busy=is_busy),
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _replicated(cell: Cell) -> Cell:
    """The same load on a topic with three replicas."""

    def run(target: Target) -> Values:
        assert target.replicated is not None, "only asked of targets that have it"
        return cell.run(target.replicated)

    return replace(
        cell, name=f"replication/{cell.name}", title=f"three replicas: {cell.title}", run=run, is_replicated=True
    )


def _replicated_partitions(count: int) -> Cell:
    return Cell(
        name=f"replication/partitions/{count}",
        title=f"three nodes with {count:,} partitions, three replicas of each",
        run=lambda target: replicated_partitions(target, count=count),
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _failover(name: str, how: str, properties: Mapping[str, str], faults: int) -> Cell:
    return Cell(
        name=f"replication/failover/{name}",
        title=f"three nodes {how}: a leader lost while records are written",
        run=lambda target: leader_failover(target, faults=faults, properties=properties),
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _client_failover(library: str, kills: int) -> Cell:
    return Cell(
        name=f"replication/failover/clients/{library}",
        title=f"three nodes: what {library} as it is sees of the loss of a leader and coordinator",
        run=lambda target: client_failover(target, library=library, kills=kills),
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _cores(nodes: int, records: int) -> Cell:
    return Cell(
        name=f"cores/{nodes}",
        title=f"{nodes} nodes on this machine, one replica" if nodes > 1 else "one node on this machine",
        run=lambda target: cores(target, nodes=nodes, records=records),
        needs_node=True,
        needs_cluster=True,
        is_particular=True,
    )


def _idempotent(in_flight: int, requests: int) -> Cell:
    return Cell(
        name=f"idempotent/{in_flight}",
        title=f"idempotent requests of one 100 B record, {in_flight} in flight on one connection",
        run=lambda target: tiny(target, in_flight=in_flight, requests=requests, is_idempotent=True),
    )


def _offset_commits(in_flight: int, commits: int) -> Cell:
    return Cell(
        name=f"groups/commits/{in_flight}",
        title=f"commits of {COMMITTED_PARTITIONS} partitions, {in_flight} in flight on one connection",
        run=lambda target: offset_commits(target, in_flight=in_flight, commits=commits),
    )


def _groups(protocol: Protocol, changes: int) -> Cell:
    return Cell(
        name=f"groups/{protocol}",
        title=f"{protocol} protocol: {MEMBERS} members in one group, {SMALL_GROUPS} groups, {PARTITIONS:,} partitions",
        run=lambda target: groups(target, protocol, changes=changes),
        needs_node=True,
        needs_cluster=True,
        is_extra=True,
    )


def _transactions(records: int, commits: int) -> Cell:
    return Cell(
        name="transactions",
        title="1 KiB, 6 partitions, a transaction each 100 ms",
        run=lambda target: transactions(target, records=records, commits=commits),
    )


def _tiny(in_flight: int, requests: int) -> Cell:
    return Cell(
        name=f"tiny/{in_flight}",
        title=f"requests of one 100 B record, {in_flight} in flight",
        run=lambda target: tiny(target, in_flight=in_flight, requests=requests),
    )
