"""Events of the cluster: from the lines of a server-sent stream, and as sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ..units import format_timestamp

Event = Mapping[str, Any]

RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Kafka: `ConfigResource.Type`."""
VALUES_MAX: Final = 5
NO_LEADER: Final = -1


def read_events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The data of each event; comments and the time to retry are left out."""
    for line in lines:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def event_line(event: Event) -> str:
    """One line: when, id, sentence."""
    return f"{format_timestamp(event['timestamp_ms'])}  {event['id']:>8}  {event_sentence(event)}"


def event_sentence(event: Event) -> str:
    """What happened; of a kind that a newer node knows, its name and values."""
    make = _SENTENCES.get(event["kind"])
    if make is None:
        values = {key: value for key, value in event.items() if key not in ("id", "kind", "timestamp_ms")}
        return f"{event['kind']} {json.dumps(values, ensure_ascii=False)}"
    return make(event)


def _place(event: Event) -> str:
    return f"{event['topic']}-{event['partition']}"


def _leader(leader: int) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def _registered(event: Event) -> str:
    rack = f", rack {event['rack']}" if event.get("rack") else ""
    return f"broker {event['broker_id']} registered (broker epoch {event['broker_epoch']}{rack})"


def _quorum(event: Event) -> str:
    leader = event["leader_id"]
    who = "its leader is not known yet" if leader is None else f"node {leader} leads"
    return f"the metadata quorum began epoch {event['epoch']}: {who}"


def _created(event: Event) -> str:
    count = event["partition_count"]
    partitions = f"{count} partition{'' if count == 1 else 's'}"
    return f"topic {event['topic']} created with {partitions} of {event['replication_factor']} replicas"


def _configs(event: Event) -> str:
    kind = RESOURCES.get(event["resource_type"], str(event["resource_type"]))
    of = f"{kind} {event['resource_name']}" if event["resource_name"] else "all brokers"
    told = []
    for one in event["changes"][:VALUES_MAX]:
        value = "hidden" if one["is_hidden"] else "unset" if one["value"] is None else one["value"]
        told.append(f"{one['name']}={value}")
    more = ", …" if event["count"] > len(told) else ""
    return f"configs of {of} changed: {', '.join(told)}{more}"


def _summary(event: Event) -> str:
    brokers = ", ".join(f"broker {broker}: {count:,}" for broker, count in event["brokers"].items())
    return f"{event['count']:,} × {event['of']} ({brokers})"


_SENTENCES: Final[Mapping[str, Callable[[Event], str]]] = {
    "broker-registered": _registered,
    "broker-unregistered": lambda event: f"broker {event['broker_id']} unregistered",
    "broker-fenced": lambda event: f"broker {event['broker_id']} fenced",
    "broker-unfenced": lambda event: f"broker {event['broker_id']} unfenced",
    "controlled-shutdown-begun": lambda event: f"broker {event['broker_id']} began its controlled shutdown",
    "broker-drained": lambda event: f"broker {event['broker_id']} drained",
    "broker-undrained": lambda event: f"broker {event['broker_id']} not drained any more",
    "log-directories-failed": lambda event: (
        f"log directories of broker {event['broker_id']} failed: {', '.join(map(str, event['directories']))}"
    ),
    "controller-registered": lambda event: f"controller {event['controller_id']} registered",
    "quorum-leader-changed": _quorum,
    "feature-changed": lambda event: f"feature {event['name']} {event['old_level']} → {event['new_level']}",
    "topic-created": _created,
    "topic-deleted": lambda event: f"topic {event['topic']} deleted",
    "partitions-added": lambda event: f"topic {event['topic']}: partitions {event['old_count']} → {event['new_count']}",
    "leader-changed": lambda event: (
        f"{_place(event)}: leader {_leader(event['old_leader'])} → {_leader(event['new_leader'])} "
        f"(leader epoch {event['leader_epoch']})"
    ),
    "isr-shrunk": lambda event: f"{_place(event)}: {_ids(event['removed'])} left the ISR, now {_ids(event['isr'])}",
    "isr-expanded": lambda event: f"{_place(event)}: {_ids(event['added'])} joined the ISR, now {_ids(event['isr'])}",
    "reassignment-begun": lambda event: (
        f"{_place(event)}: reassignment began, adding {_ids(event['adding'])}, removing {_ids(event['removing'])}"
    ),
    "reassignment-ended": lambda event: f"{_place(event)}: reassignment ended, replicas {_ids(event['replicas'])}",
    "configs-changed": _configs,
    "summary": _summary,
    "gap": lambda _: "events before this are not remembered any more",
}
"""By kind (`quorum/metadata/cluster_events.py`)."""
