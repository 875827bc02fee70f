"""Bugs of replication, each as one patch or some; the simulation finds every one of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ...broker.fetching.fetch_read import FetchRead
from ...broker.replicas.partition import Partition
from ...broker.replicas.rules.known_brokers import KnownBrokers
from ...broker.replicas.rules.leader_state import LeaderState
from ...broker.replication.replica_fetcher import ReplicaFetcher
from ...quorum.decisions import isr_changes
from .mutant import Mutant

_ANY_EPOCH: Final = -1


def _truncate_to_high_watermark(follow: Callable[..., None]) -> Any:
    def truncating(fetcher: ReplicaFetcher, partition: Partition) -> None:
        fetcher._partitions.truncate({partition: partition.state.high_watermark})
        follow(fetcher, partition)

    return truncating


def _acknowledge_at_append(is_pending: Callable[..., bool]) -> Any:
    def is_pending_for_leader(partition: Partition, end_offset: int, _acks: int) -> bool:
        return is_pending(partition, end_offset, 1)

    return is_pending_for_leader


def _is_never_stale(_: Any) -> Any:
    return lambda _brokers, _broker_id, _broker_epoch: False


def _may_join_as_any_process(_: Any) -> Any:
    def may_join(brokers: KnownBrokers, broker_id: int, _broker_epoch: int) -> bool:
        broker = brokers.registrations.get(broker_id)
        return broker is not None and broker.is_active

    return may_join


def _any_member(check: Callable[..., Any]) -> Any:
    def check_without_broker_epochs(image: Any, broker_id: int, partition: Any, asked: Any) -> Any:
        members = tuple(replace(member, broker_epoch=_ANY_EPOCH) for member in asked.new_isr_with_epochs)
        return check(image, broker_id, partition, replace(asked, new_isr_with_epochs=members))

    return check_without_broker_epochs


def _any_partition_epoch(check: Callable[..., Any]) -> Any:
    def check_without_partition_epoch(image: Any, broker_id: int, partition: Any, asked: Any) -> Any:
        return check(image, broker_id, partition, replace(asked, partition_epoch=partition.partition_epoch))

    return check_without_partition_epoch


def _committed_isr_only(_: Any) -> Any:
    def counts(leadership: LeaderState, follower: Any, _log_end_offset: int, _now_ms: int) -> bool:
        return follower.broker_id in leadership.isr.committed

    return counts


def _any_follower(read: Callable[..., Any]) -> Any:
    def read_without_epochs(fetch: FetchRead, partition: Any, wanted: Any, *arguments: Any) -> Any:
        if arguments[-1] is not None:
            wanted.current_leader_epoch = wanted.last_fetched_epoch = _ANY_EPOCH
        return read(fetch, partition, wanted, *arguments)

    return read_without_epochs


MUTANTS: Final = (
    Mutant(
        name="truncate-to-high-watermark",
        bug="who begins to follow cuts its log to its own high watermark, which may be old (KIP-101)",
        owner=ReplicaFetcher,
        attribute="follow",
        make=_truncate_to_high_watermark,
    ),
    Mutant(
        name="acknowledge-at-append",
        bug="acks=all is answered when the leader has the records",
        owner=Partition,
        attribute="is_pending",
        make=_acknowledge_at_append,
    ),
    Mutant(
        name="no-broker-epoch-check",
        bug="a process that is gone joins the ISR in the name of the one that took its place (KIP-903)",
        owner=KnownBrokers,
        attribute="is_stale",
        make=_is_never_stale,
    ),
    Mutant(
        name="no-broker-epoch-check",
        bug="",
        owner=KnownBrokers,
        attribute="may_join",
        make=_may_join_as_any_process,
    ),
    Mutant(name="no-broker-epoch-check", bug="", owner=isr_changes, attribute="_check", make=_any_member),
    Mutant(
        name="no-partition-epoch-compare",
        bug="the controller takes a change of the ISR that was made on an older state (KIP-497)",
        owner=isr_changes,
        attribute="_check",
        make=_any_partition_epoch,
    ),
    Mutant(
        name="committed-isr-only",
        bug="the high watermark passes a replica that may be in the ISR already (KIP-497)",
        owner=LeaderState,
        attribute="_counts",
        make=_committed_isr_only,
    ),
    Mutant(
        name="follower-not-fenced",
        bug="a leader does not look at the epochs that a follower names (KIP-320)",
        owner=FetchRead,
        attribute="_read_partition",
        make=_any_follower,
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in reversed(MUTANTS)})
"""What each is, by its name."""
