"""Reads of everything that partitions have in the end, as final operations of a client of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from .client_program import Client
from .session import Polled, SessionOptions, key_of, place_of

# Longer than a transaction that a dead client left open holds readers back.
CATCH_UP_S: Final = 60.0
_REQUEST_S: Final = 5.0
_POLL_S: Final = 0.3


def find_ends(bootstrap: str, keys: Sequence[str], *, deadline_s: float) -> dict[str, int] | None:
    """The high watermark of each partition; None when they are not told until then."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    wanted = {TopicPartition(*place_of(key)): OffsetSpec.latest() for key in keys}
    while clock.monotonic_s() < deadline_s:
        try:
            told = admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_REQUEST_S
            )
            return {
                f"{place.topic}-{place.partition}": future.result(_REQUEST_S).offset for place, future in told.items()
            }
        except (KafkaException, TimeoutError):
            clock.pause(_POLL_S)
    return None


def find_committed(bootstrap: str, group: str, keys: Sequence[str]) -> dict[str, int] | None:
    """What the group has committed of each partition, 0 without any; None without an answer."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*place_of(key)) for key in keys])
    try:
        told = admin.list_consumer_group_offsets([wanted], require_stable=True, request_timeout=_REQUEST_S)
        places = told[group].result(_REQUEST_S).topic_partitions
    except (KafkaException, TimeoutError):
        return None
    return {key_of(place.topic, place.partition): max(0, place.offset) for place in places}


def read_to_ends(
    client: Client,
    keys: Sequence[str],
    options: SessionOptions,
    *,
    f: str = "poll",
    asked: Any = None,
    shape: Callable[[Polled], Any] = lambda polled: polled,
) -> bool:
    """Assigns the keys from their beginnings and polls until their ends, whether that came to be in time.

    `asked` is the value of each poll as it is invoked, `shape` makes the value of its completion.
    """
    deadline_s = clock.monotonic_s() + CATCH_UP_S
    client.close()
    ends = find_ends(client.options.bootstrap, keys, deadline_s=deadline_s)
    while ends is not None and clock.monotonic_s() < deadline_s:
        if not client.has_session:
            if client.open(options, is_wanted=lambda: clock.monotonic_s() < deadline_s):
                client.perform(
                    "assign", list(keys), lambda: client.session.assign(keys, from_beginning=True), final=True
                )
        elif all(client.session.reached(key) >= end for key, end in ends.items()):
            return True
        else:
            client.perform(f, asked, lambda: shape(client.session.poll(_POLL_S)), final=True)
    return False
