"""All operations of Confluent's REST API, in the order in which the document lists them.

Routes are tried in this order: a path with `-`, for all, comes before the one with a name in that place.
"""

from __future__ import annotations

from typing import Final

from ..operation import Operation
from . import (
    acls,
    broker_configs,
    brokers,
    cluster_configs,
    clusters,
    consumer_groups,
    consumer_lags,
    consumers,
    partitions,
    reassignments,
    records,
    replicas,
    topic_configs,
    topics,
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *clusters.OPERATIONS,
    *cluster_configs.OPERATIONS,
    *brokers.OPERATIONS,
    *broker_configs.OPERATIONS,
    *topics.OPERATIONS,
    *topic_configs.OPERATIONS,
    *reassignments.OPERATIONS,
    *replicas.OPERATIONS,
    *partitions.OPERATIONS,
    *records.OPERATIONS,
    *consumer_groups.OPERATIONS,
    *consumers.OPERATIONS,
    *consumer_lags.OPERATIONS,
    *acls.OPERATIONS,
)
