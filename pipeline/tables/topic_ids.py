"""Whether a table's positions are those of the topics that are read now, by the topics' ids. Pure.

A topic without an id, in the table's note or in the cluster, is taken for the one that it was: notes of version 0.1 and
clusters before Apache Kafka 2.8 have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..job import JobError
from .positions import Positions


class RecreatedTopicError(JobError):
    """A topic is not the one that the table has rows of."""


def begun_anew(
    noted: Mapping[str, str], found: Mapping[str, str], accepted: Collection[str], *, table: str, option: str = ""
) -> frozenset[str]:
    """Topics of which the table has positions of another id than the one `found` now, which is among the `accepted`.

    `option` is the one that accepts an id, for a job that can go on with such a table. Raises RecreatedTopicError.
    """
    changed = {topic for topic, topic_id in found.items() if noted.get(topic, topic_id) != topic_id}
    refused = sorted(topic for topic in changed if found[topic] not in accepted)
    if not refused:
        return frozenset(changed)
    topic = refused[0]
    accepting = (
        f", or accept the new topic by {option}={found[topic]}, with another checkpoint as well: its records are then"
        " added from its start to those of the old one"
        if option
        else ""
    )
    raise RecreatedTopicError(
        f"the topic {topic} has the id {found[topic]}, and the table {table} has rows of one with the id"
        f" {noted[topic]}: it was deleted and made anew, or is that of another cluster, so that records below the"
        f" table's positions would be left out. Write to another table, with another checkpoint{accepting}"
    )


def without(positions: Positions, topics: Collection[str]) -> Positions:
    return {topic: partitions for topic, partitions in positions.items() if topic not in topics}


def following(positions: Positions, noted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """What is noted beside these positions. An id that is not found now stays as it is noted."""
    return {topic: topic_id for topic, topic_id in {**noted, **found}.items() if topic in positions}
