"""Broker properties of the clusters that tests break: over Kafka's defaults, under what a test asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, str]] = {
    # What a cluster decides after a time, it decides soon: a test waits for it.
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    # A follower whose fetch waits at the leader may take a new topic into the next one: 500 ms by default.
    "replica.fetch.wait.max.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    # Each partition costs files on every node, and one test has few groups.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


def text_of(value: object) -> str:
    """As Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
