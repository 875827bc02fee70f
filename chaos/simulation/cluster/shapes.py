"""What a run is made of: nodes with their roles, log directories, clients, and what goes wrong.

Each part is drawn from the seed by a generator of its own, unless an option fixes it: so a run is the same whether its
seed or an option says so.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from msgspec import Struct

from .profiles import PROFILES, Profile

# Nodes with both roles, and nodes that are only brokers; all nodes of a run that chose neither are at most seven.
_VOTER_COUNTS: Final = (3, 3, 3, 3, 4, 5)
_BROKER_COUNTS: Final = (0, 0, 0, 1, 2, 3)
_DRAWN_NODES_MAX: Final = 7
_DIRECTORY_COUNTS: Final = (1, 1, 2, 2, 3)
# Of all runs, those with transactional clients.
_TRANSACTIONS_SHARE: Final = 1 / 3
# And those whose compacted topics are compacted.
_COMPACTION_SHARE: Final = 1 / 3
# And those with tiered storage.
_TIERS_SHARE: Final = 1 / 3
# Every second run has everything at once, the others concentrate.
_PROFILES: Final = (*7 * ("all",), "faults", "restarts", "deletes", "disks", "pauses", "operator", "zombies")


class MemberCounts(NamedTuple):
    """Of a group of the classic protocol, and of one of the consumer protocol."""

    classic: int
    consumer: int


_MEMBER_COUNTS: Final = (MemberCounts(0, 0), MemberCounts(2, 0), MemberCounts(0, 3), MemberCounts(2, 3))


class Choices(Struct, frozen=True, kw_only=True):
    """What options fix; None is left to the seed."""

    nodes: int | None = None
    brokers: int | None = None
    log_dirs: int | None = None
    members: int | None = None
    transactions: bool | None = None
    compaction: bool | None = None
    tiers: bool | None = None
    profile: str | None = None
    faults_s: float = 20.0


class Shape(Struct, frozen=True, kw_only=True):
    voter_count: int
    """Nodes that are controllers and brokers."""
    broker_count: int
    """Nodes that are only brokers."""
    directory_count: int
    """Log directories of each node."""
    member_counts: MemberCounts
    has_transactions: bool
    has_compaction: bool
    """Whether there is a table, and logs of compacted topics are compacted within seconds."""
    has_tiers: bool
    """Whether all but the compacted topics are in tiered storage, with little on disks."""
    profile_name: str
    faults_s: float

    @property
    def profile(self) -> Profile:
        return PROFILES[self.profile_name]

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.voter_count + self.broker_count + 1))

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return self.node_ids[: self.voter_count]

    @property
    def replication_factor(self) -> int:
        return min(3, len(self.node_ids))

    @property
    def has_groups(self) -> bool:
        return any(self.member_counts)

    @property
    def options(self) -> str:
        """The options of `penstock simulate` that fix all of it."""
        # Counts of members that no option gives come from the seed.
        classic, consumer = self.member_counts
        members = f" --members {classic}" if classic == consumer else ""
        return (
            f"--nodes {self.voter_count} --brokers {self.broker_count} --log-dirs {self.directory_count}{members}"
            f" --{'' if self.has_transactions else 'no-'}transactions"
            f" --{'' if self.has_compaction else 'no-'}compaction"
            f" --{'' if self.has_tiers else 'no-'}tiers --profile {self.profile_name}"
            f" --faults-s {self.faults_s:g}"
        )


def shape_of(seed: int, choices: Choices) -> Shape:
    voters = Random(f"voters {seed}").choice(_VOTER_COUNTS) if choices.nodes is None else choices.nodes
    brokers = choices.brokers
    if brokers is None:
        brokers = min(Random(f"brokers {seed}").choice(_BROKER_COUNTS), max(0, _DRAWN_NODES_MAX - voters))
    directories = choices.log_dirs
    if directories is None:
        directories = Random(f"directories {seed}").choice(_DIRECTORY_COUNTS)
    members = MemberCounts(choices.members, choices.members) if choices.members is not None else None
    has_transactions = choices.transactions
    if has_transactions is None:
        has_transactions = Random(f"transactions {seed}").random() < _TRANSACTIONS_SHARE
    has_compaction = choices.compaction
    if has_compaction is None:
        has_compaction = Random(f"compaction {seed}").random() < _COMPACTION_SHARE
    has_tiers = choices.tiers
    if has_tiers is None:
        has_tiers = Random(f"tiers {seed}").random() < _TIERS_SHARE
    profile = Random(f"profile {seed}").choice(_PROFILES) if choices.profile is None else choices.profile
    return Shape(
        voter_count=voters,
        broker_count=brokers,
        directory_count=directories,
        member_counts=Random(f"members {seed}").choice(_MEMBER_COUNTS) if members is None else members,
        has_transactions=has_transactions,
        has_compaction=has_compaction,
        has_tiers=has_tiers,
        profile_name=profile,
        faults_s=choices.faults_s,
    )
