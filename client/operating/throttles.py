"""Reassignments that are held to a rate: Kafka's throttle configs, as kafka-reassign-partitions sets them (KIP-73)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...protocol.rest.described_configs import ConfigChanges
from ...protocol.rest.moves import Move

if TYPE_CHECKING:
    from ..admin import Admin

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
REPLICAS: Final = (LEADERS, FOLLOWERS)
_OWN_SOURCES: Final = frozenset({"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"})
_PAGE_SIZE: Final = 500


def throttled_replicas(moves: Iterable[Move]) -> dict[str, dict[str, str]]:
    """By topic the configs that name its moving replicas: those that are copied from, and those that are filled."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for move in moves:
        if move.adding:
            leaders.setdefault(move.topic, []).extend(f"{move.partition}:{broker}" for broker in move.before)
            followers.setdefault(move.topic, []).extend(f"{move.partition}:{broker}" for broker in move.adding)
    return {topic: {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])} for topic in leaders}


def set_throttle(admin: Admin, moves: Sequence[Move], bytes_per_second: int) -> None:
    """Of the brokers and topics that take part. Raises AdminError."""
    by_topic = throttled_replicas(moves)
    brokers = {broker for move in moves if move.adding for broker in (*move.before, *move.adding)}
    for topic, configs in by_topic.items():
        admin.alter_configs("topic", topic, ConfigChanges(set=configs))
    rates = dict.fromkeys(RATES, str(bytes_per_second))
    for broker in sorted(brokers):
        admin.alter_configs("broker", str(broker), ConfigChanges(set=rates))


def remove_throttles(admin: Admin, topics: Iterable[str] | None = None) -> list[str]:
    """Of these topics (None: all) and of all brokers; what had some. Raises AdminError."""
    brokers = [str(node.node_id) for node in admin.list_nodes().nodes if node.state == "running"]
    found = [f"broker {name}" for name in brokers if _unset(admin, "broker", name, RATES)]
    names = _all_topics(admin) if topics is None else sorted(set(topics))
    return found + [f"topic {name}" for name in names if _unset(admin, "topic", name, REPLICAS)]


def own_keys(values: Mapping[str, str]) -> list[str]:
    """Those that were set on the resource itself; `values` are sources by key."""
    return [key for key, source in values.items() if source in _OWN_SOURCES]


def _unset(admin: Admin, kind: str, name: str, keys: Sequence[str]) -> bool:
    told = admin.describe_configs(kind, name, keys=",".join(keys), documentation=False)
    found = own_keys({one.name: one.source for one in told.configs})
    if found:
        admin.alter_configs(kind, name, ConfigChanges(unset=found))
    return bool(found)


def _all_topics(admin: Admin) -> list[str]:
    names: list[str] = []
    token: str | None = None
    while True:
        page = admin.list_topic_overviews(offsets=False, page_size=_PAGE_SIZE, page_token=token)
        names += [one.name for one in page.topics]
        token = page.next
        if token is None:
            return names
