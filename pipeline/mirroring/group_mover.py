"""Commits translated offsets of consumer groups in the sink."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import OffsetSpec

from ..connector.admin_clients import REQUEST_TIMEOUT_S, admin_client, list_offsets, repeatedly
from ..connector.deadline import Deadline
from .rules.group_offsets import Translation, advances, translate_group
from .rules.offset_map import OffsetMap
from .rules.source_partition import SourcePartition

_LOG: Final = logging.getLogger(__name__)

_TIMEOUT_S: Final = 60.0
# A group with members commits for itself.
_IDLE: Final = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD, ConsumerGroupState.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What was done for one group."""

    group: str
    committed: dict[tuple[str, int], int]
    """In the sink, by topic and partition."""
    not_copied: tuple[SourcePartition, ...]
    is_active: bool
    """The group has members in the sink, so that nothing was committed."""


def move_group(
    group: str, sources: Mapping[str, Mapping[str, str]], sink: Mapping[str, str], offset_map: OffsetMap
) -> Move:
    """Never back behind what the group has committed in the sink itself. Raises RequestError."""
    deadline = Deadline(_TIMEOUT_S)
    committed = {
        SourcePartition(cluster=cluster, topic=topic, partition=partition): offset
        for cluster, properties in sources.items()
        for (topic, partition), offset in committed_offsets(properties, group, deadline).items()
        # The group may read more than what is copied.
        if any(one.cluster == cluster and one.topic == topic for one in offset_map.positions)
    }
    starts = list_offsets(sink, dict.fromkeys(_targets(offset_map, list(committed)), OffsetSpec.earliest()), deadline)
    translation: Translation = translate_group(offset_map, committed, starts)
    if not _is_idle(sink, group, deadline):
        return Move(group=group, committed={}, not_copied=translation.not_copied, is_active=True)
    wanted = advances(translation, committed_offsets(sink, group, deadline))
    if wanted:
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in sorted(wanted.items())]
        request = [ConsumerGroupTopicPartitions(group, places)]

        def commit() -> None:
            (future,) = (
                admin_client(sink).alter_consumer_group_offsets(request, request_timeout=REQUEST_TIMEOUT_S).values()
            )
            future.result()

        repeatedly(commit, f"offsets of group {group} cannot be committed in the sink", deadline)
        _LOG.info("group %s: %d offsets committed in the sink", group, len(wanted))
    return Move(group=group, committed=wanted, not_copied=translation.not_copied, is_active=False)


def committed_offsets(properties: Mapping[str, str], group: str, deadline: Deadline) -> dict[tuple[str, int], int]:
    """Of stable transactions. Raises RequestError."""

    def ask() -> dict[tuple[str, int], int]:
        wanted = [ConsumerGroupTopicPartitions(group)]
        (future,) = (
            admin_client(properties)
            .list_consumer_group_offsets(wanted, require_stable=True, request_timeout=REQUEST_TIMEOUT_S)
            .values()
        )
        return {
            (one.topic, one.partition): one.offset
            for one in future.result().topic_partitions
            if one.error is None and one.offset >= 0
        }

    return repeatedly(ask, f"offsets of group {group} cannot be read", deadline)


def _is_idle(sink: Mapping[str, str], group: str, deadline: Deadline) -> bool:
    def ask() -> bool:
        (future,) = admin_client(sink).describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S).values()
        return future.result().state in _IDLE

    return repeatedly(ask, f"group {group} of the sink cannot be described", deadline)


def _targets(offset_map: OffsetMap, partitions: Sequence[SourcePartition]) -> list[tuple[str, int]]:
    positions = [offset_map.positions[one] for one in partitions if one in offset_map.positions]
    return sorted({(one.target_topic, one.target_partition) for one in positions if one.target_partition is not None})
