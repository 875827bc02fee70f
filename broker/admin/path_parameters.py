"""The parameters that stand in paths: what they are called, their type and what they mean."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PARAMETER = re.compile(r"\{(\w+)\}")


class PathParameter(NamedTuple):
    """`type` is int or str."""

    type: type
    description: str


PATH_PARAMETERS: Final = {
    "cluster_id": PathParameter(str, "The id of this cluster."),
    "broker_id": PathParameter(int, "The id of a broker."),
    "node_id": PathParameter(int, "The id of a node."),
    "topic_name": PathParameter(str, "The name of a topic."),
    "partition_id": PathParameter(int, "The index of a partition in its topic."),
    "consumer_group_id": PathParameter(str, "The id of a group."),
    "consumer_id": PathParameter(str, "The id of a member of a group."),
    "name": PathParameter(str, "The name of a configuration key."),
    "page_file": PathParameter(str, "A file of the page."),
    "resource_type": PathParameter(
        str, "What the configuration belongs to: broker, broker-logger, topic, group or client-metrics."
    ),
    "resource_name": PathParameter(str, "The name of what the configuration belongs to: a broker's is its id."),
    "transactional_id": PathParameter(str, "The id by which a transactional producer is known."),
}


def names_in(path: str) -> tuple[str, ...]:
    """Return the parameters of a path, in order."""
    return tuple(_PARAMETER.findall(path))
