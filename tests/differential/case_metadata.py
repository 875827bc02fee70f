"""Metadata, DescribeTopicPartitions, DescribeCluster, ApiVersions and FindCoordinator: what clients ask first."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from differential.script import Run, case

from penstock.protocol.apis import ApiKey

UNKNOWN_ID = UUID(int=12345)
GROUP, TRANSACTION = 0, 1
COORDINATOR_TIMEOUT_S = 3.0


def named(*names: str | None) -> list[dict[str, Any]]:
    return [{"name": name, "topic_id": None} for name in names]


def identified(*ids: UUID) -> list[dict[str, Any]]:
    return [{"name": None, "topic_id": one} for one in ids]


@case(ApiKey.METADATA)
def metadata(run: Run) -> None:
    many, other = run.create("many", 3), run.create("other")
    no = {"allow_auto_topic_creation": False}
    run.ask("one", topics=named(many), **no)
    run.ask("two", topics=named(other, many), **no)
    run.ask("one twice", topics=named(other, other), **no)
    run.ask("all", topics=None if run.version else [], only_own=True, **no)
    if run.version:
        run.ask("none", topics=[], **no)
    run.ask("all by default", topics=None if run.version else [], only_own=True)
    operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    run.ask("operations", topics=named(many), **no, **operations)
    run.ask("operations of an unknown topic", topics=named(run.name("unknown")), **no, **operations)
    if run.version >= 4:
        run.ask("unknown", topics=named(run.name("unknown")), **no)
        run.ask("unknown and known", topics=named(run.name("unknown"), many), **no)
        run.ask("unknown twice", topics=named(run.name("unknown"), run.name("unknown")), **no)
        run.ask("invalid names", topics=named("", ".", "a b", "x" * 250), **no)
    run.ask("invalid names, to be created", topics=named("..", "a b", "x" * 250), allow_auto_topic_creation=True)
    run.ask("empty name, to be created", topics=named(""), allow_auto_topic_creation=True)


@case(ApiKey.METADATA)
def metadata_creates(run: Run) -> None:
    wanted = named(run.name("wanted"))
    run.ask("first question", topics=wanted, allow_auto_topic_creation=True)
    run.settle(run.name("wanted"))
    run.ask("when it is there", topics=wanted, allow_auto_topic_creation=True)
    run.ask("collides", topics=named(run.name("wanted").replace(".", "_")), allow_auto_topic_creation=True)
    run.ask("created twice", topics=named(run.name("twice"), run.name("twice")), allow_auto_topic_creation=True)
    run.settle(run.name("twice"))
    run.ask("created twice, there", topics=named(run.name("twice")), allow_auto_topic_creation=True)


@case(ApiKey.METADATA, versions=(10, 11, 12, 13))
def metadata_by_id(run: Run) -> None:
    name = run.create()
    for creates in (False, True):
        run.ask(f"known, {creates}", topics=identified(run.ids[name]), allow_auto_topic_creation=creates)
        run.ask(f"unknown, {creates}", topics=identified(UNKNOWN_ID), allow_auto_topic_creation=creates)
    ids = identified(UNKNOWN_ID, run.ids[name])
    run.ask("both", topics=ids, allow_auto_topic_creation=False)
    run.ask("id twice", topics=identified(run.ids[name], run.ids[name]), allow_auto_topic_creation=False)
    mixed = [*named(name), *identified(run.ids[name])]
    run.ask("name and id apart", topics=mixed, allow_auto_topic_creation=False)
    together = [{"name": name, "topic_id": run.ids[name]}]
    run.ask("name and id together", topics=together, allow_auto_topic_creation=False)
    wrong = [{"name": name, "topic_id": UNKNOWN_ID}]
    run.ask("name with another's id", topics=wrong, allow_auto_topic_creation=False)
    run.ask("neither", topics=named(None), allow_auto_topic_creation=False)


@case(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def describe_topic_partitions(run: Run) -> None:
    first, second = run.create("a", 3), run.create("b", 2)

    def describe(step: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
        run.ask(step, topics=[{"name": name} for name in names], response_partition_limit=limit, cursor=at)

    describe("both", second, first)
    describe("twice", first, first)
    describe("unknown", run.name("unknown"), first)
    describe("invalid", "", "a b", "x" * 250)
    describe("two of five", first, second, limit=2)
    describe("three of five", first, second, limit=3)
    describe("four of five", first, second, limit=4)
    describe("five of five", first, second, limit=5)
    describe("from the second", first, second, limit=2, cursor=(first, 1))
    describe("from the next topic", first, second, limit=2, cursor=(second, 0))
    describe("from the last", first, second, limit=2, cursor=(second, 1))
    describe("beyond the last", first, second, limit=2, cursor=(second, 2))
    describe("from between the topics", first, second, cursor=(run.name("aa"), 0))
    describe("from behind the topics", first, second, cursor=(run.name("z"), 0))
    describe("negative partition", first, second, cursor=(first, -1))
    describe("no limit", first, limit=0)
    describe("negative limit", first, limit=-1)
    describe("one", first, second, limit=1)
    describe("cursor at an unknown topic", first, run.name("u"), second, limit=2, cursor=(run.name("u"), 0))
    describe("cursor without its topic", second, cursor=(first, 1))
    run.ask("all by none", topics=[], only_own=True)


@case(ApiKey.DESCRIBE_CLUSTER)
def describe_cluster(run: Run) -> None:
    run.ask("plain", include_cluster_authorized_operations=False)
    run.ask("operations", include_cluster_authorized_operations=True)
    run.ask("fenced too", include_fenced_brokers=True)
    for endpoint in (0, 2, 3, -1):
        run.ask(f"endpoint {endpoint}", endpoint_type=endpoint)


@case(ApiKey.API_VERSIONS)
def api_versions(run: Run) -> None:
    run.ask("plain", client_software_name="script", client_software_version="1.0")
    for place, (name, version) in enumerate(
        (("", ""), ("a b", "1"), ("-a", "1"), ("a", "1 0"), ("a-", "1"), ("é", "1"))
    ):
        run.ask(f"software {place}", client_software_name=name, client_software_version=version)


def has_coordinator(run: Run, kind: int) -> bool:
    answer = run.quiet(ApiKey.FIND_COORDINATOR, key_type=kind, coordinator_keys=["x"])
    return bool(answer["coordinators"][0]["error_code"] == 0)


@case(ApiKey.FIND_COORDINATOR)
def find_coordinator(run: Run) -> None:
    def find(step: str, kind: int, *keys: str) -> None:
        run.ask(step, key_type=kind, key=keys[0] if keys else "", coordinator_keys=list(keys))

    kinds = (GROUP, TRANSACTION) if run.version else (GROUP,)
    # Where there are coordinators, the first question makes the internal topic that they need.
    for kind in kinds if run.version <= 1 else ():
        run.wait_at_most(COORDINATOR_TIMEOUT_S, partial(has_coordinator, run, kind))
    for kind in kinds:
        find(f"kind {kind}", kind, "x")
        if run.version >= 4:
            find(f"two of kind {kind}", kind, "x", "y")
    for kind in (3, 7, -1) if run.version else ():
        find(f"kind {kind}", kind, "x")
    if run.version >= 4:
        find("nobody", 0)


@case(ApiKey.DESCRIBE_QUORUM)
def describe_quorum(run: Run) -> None:
    def describe(step: str, topic: str, *partitions: int) -> None:
        run.ask(step, topics=[{"topic_name": topic, "partitions": [{"partition_index": one} for one in partitions]}])

    describe("unknown partition", "__cluster_metadata", 7)
    describe("unknown topic", run.name("unknown"), 0)
    describe("no partitions", "__cluster_metadata")
    run.ask("nothing", topics=[])


@case(ApiKey.SASL_HANDSHAKE)
def sasl_handshake(run: Run) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", ""):
        run.ask(f"mechanism {mechanism}", mechanism=mechanism)


@case(ApiKey.SASL_AUTHENTICATE)
def sasl_authenticate(run: Run) -> None:
    run.ask("bytes", auth_bytes=b"\0me\0secret")
    run.ask("no bytes", auth_bytes=b"")
