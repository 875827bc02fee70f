"""Bugs that specifications of Kafka's replication show: versions of it that lose data, and checks left out.

Broken versions: `KafkaTruncateToHighWatermark`, `Kip101`, `Kip279`, `Kip320FirstTry` (hachikuji/kafka-specification).
Checks: the lines marked CHECK of `kafka_replication_kip_966` (Vanlightly/kafka-tlaplus). `RaftFsync` has what must be
synced before what (Vanlightly/raft-tlaplus). `forms.SPECIFIED` says which mutant is which; some of them are in
other modules.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.coordinators.coordinator_context import CoordinatorContext
from ...broker.fetching.fetch_read import FetchRead
from ...broker.replicas.partition import Partition
from ...broker.replicas.rules.follower_progress import FollowerProgress
from ...broker.replicas.rules.leader_state import LeaderState
from ...broker.replicas.rules.partition_state import PartitionState
from ...broker.replication.replica_fetcher import ReplicaFetcher
from ...broker.replication.rules.fetch_plan import FetchPlan
from ...broker.transactions import transaction_shard
from ...broker.transactions.transaction_shard import TransactionShard
from ...quorum.decisions import brokers
from .edited import edited
from .mutant import Mutant

_ANY_EPOCH: Final = -1


def _of_any_leader_epoch(read: Callable[..., Any]) -> Any:
    def read_without_leader_epoch(fetch: FetchRead, partition: Any, wanted: Any, *arguments: Any) -> Any:
        if arguments[-1] is not None:
            wanted.current_leader_epoch = _ANY_EPOCH
        return read(fetch, partition, wanted, *arguments)

    return read_without_leader_epoch


def _with_earlier_progress(register: Callable[..., Any]) -> Any:
    earlier: dict[PartitionState, Mapping[Any, FollowerProgress]] = {}

    def register_with_progress(state: PartitionState, *arguments: Any, **keywords: Any) -> Any:
        before = state.leadership
        if before is not None:
            earlier[state] = before.followers
        effects = register(state, *arguments, **keywords)
        after = state.leadership
        if after is not None and after is not before:
            known = earlier.get(state, {})
            after.followers = {replica: known.get(replica, own) for replica, own in after.followers.items()}
        return effects

    return register_with_progress


def _wherever_it_ends(_: Callable[..., bool]) -> Any:
    def expects(plan: FetchPlan, key: Any, _number: int) -> bool:
        asked = plan._in_session.get(key)
        return key in plan._fetching and asked is not None and asked.leader_epoch == plan._position_of(key).leader_epoch

    return expects


def _as_it_was_left(load: Callable[..., Any]) -> Any:
    # By topic and partition of each node's object: a process that begins anew has none.
    left: dict[Any, Any] = {}

    async def load_what_was_left(context: CoordinatorContext[Any]) -> None:
        made = context._shard
        known = left.get(context.partition)
        left[context.partition] = made
        if known is None or not isinstance(made, TransactionShard):
            await load(context)
            return
        made._entries = {name: transaction_shard._Entry(entry.transaction) for name, entry in known._entries.items()}
        context._activate(0, context._loop.time())

    return load_what_was_left


MUTANTS: Final = (
    Mutant(
        name="leader-epoch-not-compared",
        bug="a leader looks at the last epoch in a follower's log only, not at the one it is in (KIP-320, first try)",
        owner=FetchRead,
        attribute="_read_partition",
        make=_of_any_leader_epoch,
    ),
    Mutant(
        name="earlier-start-registers",
        bug="a registration of a process that is gone takes the place of the next one's",
        owner=brokers,
        attribute="_check_successor",
        make=edited(" and is_later_start(incarnation_id, existing.incarnation_id):", ":"),
    ),
    Mutant(
        name="followed-already",
        bug="who follows a leader already does not begin anew in its next epoch",
        owner=ReplicaFetcher,
        attribute="follow",
        make=edited(
            "    key = _key(partition)\n",
            "    key = _key(partition)\n    if self._followed.get(key) is partition:\n        return\n",
        ),
    ),
    Mutant(
        name="earlier-progress-counts",
        bug="what a follower had in an earlier leadership counts in the next one",
        owner=PartitionState,
        attribute="register",
        make=_with_earlier_progress,
    ),
    Mutant(
        name="unheard-follower-counts",
        bug="a follower that was not heard yet in this leadership counts as having everything",
        owner=FollowerProgress,
        attribute="__init__",
        make=edited("self.log_end_offset = UNKNOWN_OFFSET", "self.log_end_offset = 2**62"),
    ),
    Mutant(
        name="join-below-the-high-watermark",
        bug="a replica joins the ISR before it has what is committed",
        owner=LeaderState,
        attribute="proposal_to_join",
        make=edited("        or follower.log_end_offset < high_watermark\n", ""),
    ),
    Mutant(
        name="answer-for-another-offset",
        bug="a follower takes in an answer though its log ends elsewhere than when it asked",
        owner=FetchPlan,
        attribute="expects",
        make=_wherever_it_ends,
    ),
    Mutant(
        name="answer-of-another-epoch",
        bug="a follower takes in an answer of an earlier leader epoch",
        owner=FetchPlan,
        attribute="expects",
        make=edited(
            "asked._replace(log_start_offset=",
            "asked._replace(leader_epoch=present.leader_epoch, log_start_offset=",
        ),
    ),
    Mutant(
        name="unsynced-leader-counts",
        bug="with flush.messages=1 a leader counts its own records before they are synced",
        owner=Partition,
        attribute="_on_appended_as_leader",
        make=edited(
            "        self._request_flush(end_offset)",
            "        self._request_flush(end_offset)\n"
            "        partition.on_log_end(end_offset, self._monotonic_ms() if partition.is_replicated else 0)",
        ),
    ),
    Mutant(
        name="transactions-as-they-were-left",
        bug="a coordinator that gets a partition back goes on with the transactions that it knew when it lost it",
        owner=CoordinatorContext,
        attribute="_load",
        make=_as_it_was_left,
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
