"""What the node's configuration says of consumer groups, and what a group may say for itself."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

UNIFORM: Final = "uniform"
RANGE: Final = "range"
ASSIGNOR_NAMES: Final = (UNIFORM, RANGE)
"""The built-in assignors of `group.consumer.assignors`."""


class MigrationPolicy(Enum):
    """`group.consumer.migration.policy`: which live groups may change their protocol (KIP-848)."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class ConsumerGroupConfig(Struct, frozen=True, kw_only=True):
    """Each field is Apache Kafka's property of that name behind `group.consumer.`, dots for underscores, unless it says
    otherwise."""

    is_enabled: bool
    """`group.coordinator.rebalance.protocols` names `consumer`: the APIs of consumer groups are answered."""
    assignors: tuple[str, ...]
    """The first is the one that is used when no member names one."""
    max_size: int
    migration_policy: MigrationPolicy
    regex_refresh_interval_ms: int


class GroupSettings(NamedTuple):
    """What a group may have configured for itself; otherwise the broker's `group.consumer.` of the same name."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    """So long at least lies between two target assignments (KIP-1263)."""


SettingsOf: TypeAlias = Callable[[str], GroupSettings]
