"""The features of a cluster: which levels this software supports, and which a new cluster starts with.

KIP-584, KIP-1022. Names and numbers are Kafka's: its tools refuse levels that Kafka 4.3 does not have, so none are
invented; levels that Kafka has and this software has not (KIP-853 voters, share groups, streams groups) are not told
of. What the cluster has finalized is in the metadata image.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
"""Of the quorum itself, and no record of the metadata: the voters are static (KIP-853)."""
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"


class SupportedRange(NamedTuple):
    """Levels, both ends included."""

    min_level: int
    max_level: int

    def __str__(self) -> str:
        """Return it as Kafka's sentences have it."""
        return str(self.min_level) if self.min_level == self.max_level else f"{self.min_level}-{self.max_level}"


class Feature(Struct, frozen=True, kw_only=True):
    """One feature: what this software supports, and what a new cluster has of it.

    `needs` has, for a level, the lowest levels of other features that it depends on.
    """

    supported: SupportedRange
    initial_level: int
    needs: Mapping[int, Mapping[str, int]] = {}


# metadata.version 7 is 3.3-IV3, where KRaft begins; 23 is 4.0-IV1, 30 is 4.3-IV0.
FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        GROUP_VERSION: Feature(supported=SupportedRange(0, 1), initial_level=1),
        KRAFT_VERSION: Feature(supported=SupportedRange(0, 0), initial_level=0),
        METADATA_VERSION: Feature(supported=SupportedRange(7, 30), initial_level=30),
        SHARE_VERSION: Feature(supported=SupportedRange(0, 0), initial_level=0),
        TRANSACTION_VERSION: Feature(supported=SupportedRange(0, 2), initial_level=2),
        ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(
            supported=SupportedRange(0, 1), initial_level=1, needs={1: {METADATA_VERSION: 23}}
        ),
    }
)

CORDONED_DIRECTORIES_VERSION = 30
"""The metadata.version from which on log directories may be cordoned (KIP-1066): 4.3-IV0."""
NOT_SUPPORTED = SupportedRange(0, 0)
"""What stands for a feature that nothing is said about: level 0 is its absence."""

# The metadata versions that brought records or fields which older ones do not have: going below one of them loses them.
_LEVELS_WITH_NEW_METADATA = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})


def supported_levels(name: str) -> SupportedRange:
    """Return what this software supports of a feature, known or not."""
    feature = FEATURES.get(name)
    return NOT_SUPPORTED if feature is None else feature.supported


def has_cordoned_directories(levels: Mapping[str, int]) -> bool:
    """Whether a cluster with these levels of features knows of cordoned log directories."""
    return levels.get(METADATA_VERSION, 0) >= CORDONED_DIRECTORIES_VERSION


def loses_metadata(current: int, lower: int) -> bool:
    """Whether a downgrade of metadata.version could lose something that `lower` cannot say."""
    return any(lower < level <= current for level in _LEVELS_WITH_NEW_METADATA)
