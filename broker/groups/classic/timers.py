"""The timers of a classic group, as keys. They are of one incarnation: a later group of the same name does not receive
them. Named tuples are equal to any tuple of the same values, so `kind` keeps timers apart."""

from __future__ import annotations

from typing import Literal, NamedTuple


class MemberSession(NamedTuple):
    """Kafka: `DelayedHeartbeat`. The member, or one that only knows its id, sent nothing within its session."""

    group_id: str
    incarnation: int
    member_id: str
    kind: Literal["session"] = "session"


class JoinDeadline(NamedTuple):
    """Kafka: `DelayedJoin`, `InitialDelayedJoin`. A rebalance waits no longer for members to join."""

    group_id: str
    incarnation: int
    kind: Literal["join"] = "join"


class SyncDeadline(NamedTuple):
    """Kafka: `DelayedSync`. Every member of the generation must have sent its SyncGroup by then."""

    group_id: str
    incarnation: int
    generation: int
    kind: Literal["sync"] = "sync"
