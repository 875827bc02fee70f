"""What a client of HTTP must be allowed for each operation, where there is an authorizer.

An operation is permitted as a whole, before it begins. The handlers of this node and of others that it asks are asked
in the client's name, and have his permissions checked besides (`broker/network/rules/client_envelope.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ....protocol.acls import CLUSTER_NAME, AclOperation, ResourceType

_READING: Final = frozenset({"GET", "HEAD"})
_TOPIC: Final = "topic_name"
_GROUP: Final = "consumer_group_id"


class Needed(NamedTuple):
    """An operation on a resource, which a parameter of the path names, or which is the cluster."""

    operation: AclOperation
    resource_type: ResourceType = ResourceType.CLUSTER
    parameter: str | None = None

    def name(self, path: Mapping[str, str]) -> str:
        return CLUSTER_NAME if self.parameter is None else path[self.parameter]


def _of_topic(operation: AclOperation) -> Needed:
    return Needed(operation, ResourceType.TOPIC, _TOPIC)


BY_NAME: Final[Mapping[str, Needed | None]] = {
    # The handler asks: by the name of the topic in the body.
    "createTopic": None,
    "updatePartitionCount": _of_topic(AclOperation.ALTER),
    "deleteTopic": _of_topic(AclOperation.DELETE),
    "alterTopicConfigs": _of_topic(AclOperation.ALTER_CONFIGS),
    "updateTopicConfig": _of_topic(AclOperation.ALTER_CONFIGS),
    "deleteTopicConfig": _of_topic(AclOperation.ALTER_CONFIGS),
    "listTopicConfigs": _of_topic(AclOperation.DESCRIBE_CONFIGS),
    "getTopicConfig": _of_topic(AclOperation.DESCRIBE_CONFIGS),
    "listDefaultTopicConfigs": _of_topic(AclOperation.DESCRIBE_CONFIGS),
    "produceRecord": _of_topic(AclOperation.WRITE),
    "produceRecordsBatch": _of_topic(AclOperation.WRITE),
    "readTopicRecords": _of_topic(AclOperation.READ),
    "readRecords": _of_topic(AclOperation.READ),
}
"""Those that do not follow from the path; None: no permission besides what handlers ask for."""
_CONFIGS = re.compile(r"/(?:broker-)?configs\b")


def needed(name: str, method: str, path: str) -> Needed | None:
    """Return what the operation of that name needs; `path` is the pattern of its path."""
    if name in BY_NAME:
        return BY_NAME[name]
    is_reading = method in _READING
    if _CONFIGS.search(path):
        return Needed(AclOperation.DESCRIBE_CONFIGS if is_reading else AclOperation.ALTER_CONFIGS)
    if is_reading and f"{{{_GROUP}}}" in path:
        return Needed(AclOperation.DESCRIBE, ResourceType.GROUP, _GROUP)
    if is_reading and f"{{{_TOPIC}}}" in path:
        return _of_topic(AclOperation.DESCRIBE)
    return Needed(AclOperation.DESCRIBE if is_reading else AclOperation.ALTER)
