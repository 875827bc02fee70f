"""Whether a cluster is whole: every partition is led and every replica in sync, as its brokers tell clients."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ...local.errors import ClusterError

_ASK_S: Final = 5.0
_POLL_S: Final = 0.2
# A sentence names so many partitions; the rest are counted.
_NAMED_MAX: Final = 5


def wait_whole(bootstrap: str, *, brokers: int, timeout_s: float) -> str | None:
    """Waits until `brokers` are there and every partition of every topic, internal ones too, is led and in sync.

    Returns None, or after `timeout_s` the sentence that says what is missing.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    missing: str | None = None

    def is_whole() -> bool:
        nonlocal missing
        missing = _missing(admin, brokers)
        return missing is None

    clock.wait_until(is_whole, timeout_s=timeout_s, interval_s=_POLL_S)
    return missing


def brokers_of(bootstrap: str) -> dict[int, tuple[str, int]]:
    """Addresses by id, of those that are there now. Raises ClusterError when no broker answers."""
    try:
        told = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER).list_topics(timeout=_ASK_S)
    except KafkaException as error:
        raise ClusterError(f"no broker answers at {bootstrap}: {error.args[0]}") from error
    return {broker.id: (str(broker.host), broker.port) for broker in told.brokers.values()}


def _missing(admin: AdminClient, brokers: int) -> str | None:
    try:
        told = admin.list_topics(timeout=_ASK_S)
    except KafkaException as error:
        return f"no broker says what the cluster is: {error.args[0]}"
    if len(told.brokers) < brokers:
        return f"{len(told.brokers)} of {brokers} brokers are there"
    bad = [
        f"{topic.topic}-{partition.id} (leader {partition.leader}, in sync {sorted(partition.isrs)} of"
        f" {sorted(partition.replicas)})"
        for topic in told.topics.values()
        for partition in topic.partitions.values()
        if partition.leader < 0 or set(partition.isrs) != set(partition.replicas)
    ]
    if not bad:
        return None
    more = f" and {len(bad) - _NAMED_MAX} more" if len(bad) > _NAMED_MAX else ""
    return f"{len(bad)} partitions are not whole: {', '.join(bad[:_NAMED_MAX])}{more}"
