"""The features that this software supports, by Kafka's names and level numbers (KIP-584, KIP-1022).

Kafka's tools refuse level numbers that Kafka 4.3 does not have, so none are invented; levels that Kafka has and this
software has not (KIP-853 voters, share groups, streams groups) are not told of. What the cluster has finalized is in
the metadata image.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class SupportedRange(NamedTuple):
    """Levels, both ends included."""

    min_level: int
    max_level: int


# metadata.version 7 is 3.3-IV3, where KRaft begins; 30 is 4.3-IV0.
SUPPORTED_FEATURES: Mapping[str, SupportedRange] = MappingProxyType(
    {
        "group.version": SupportedRange(0, 1),
        "kraft.version": SupportedRange(0, 0),
        "metadata.version": SupportedRange(7, 30),
        "share.version": SupportedRange(0, 0),
        "transaction.version": SupportedRange(0, 2),
        "eligible.leader.replicas.version": SupportedRange(0, 1),
    }
)
