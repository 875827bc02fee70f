"""Bugs of one line each, all over the node; a unit test catches each, and directed runs of the simulation find it."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from ...broker.coordinators.marker_sender import MarkerSender
from ...broker.groups import offset_protocol
from ...broker.groups.classic.group import ClassicGroup
from ...broker.groups.consumer import offset_access
from ...broker.groups.offset_store import OffsetStore
from ...broker.node import lifecycle
from ...broker.replicas.partition import Partition
from ...broker.replicas.replica_manager import ReplicaManager
from ...broker.replicas.rules.in_sync_replicas import InSyncReplicas
from ...broker.replicas.rules.leader_state import LeaderState
from ...broker.replication import replica_fetcher
from ...broker.replication.replica_fetcher import ReplicaFetcher
from ...broker.replication.rules import divergence
from ...broker.tiers import remote_log_manager
from ...broker.transactions.transaction_shard import TransactionShard
from ...protocol.structs import replace
from ...quorum.controller.controller import Controller
from ...quorum.decisions import brokers
from ...quorum.decisions.controller_request import ControllerRequest
from ...storage.log import producer_snapshots, recovery, truncation
from ...storage.log.rules import producer_entry
from ...storage.log.rules.producer_state import ProducerState
from ...storage.log.segment import Segment
from ...storage.log.truncation import TruncatableLog
from .edited import edited
from .mutant import Mutant

# Functions that other modules have by name are patched in each.
_OLDER_EPOCH_MAY_COMMIT: Final = edited("if epoch < since:", "if epoch < since < 0:")
_OWN_EPOCH_IGNORED: Final = edited(
    "if epoch != leaders_epoch:\n        return min(end_offset,",
    "if epoch != leaders_epoch:\n        return min(leaders_end_offset,",
)
_UNCLEAN_IS_CLEAN: Final = edited(
    "is_clean = existing is not None and BrokerEpoch(request.previous_broker_epoch) == existing.epoch",
    "is_clean = existing is not None",
)


@cache
def _unclean_registration(request: ControllerRequest[Any, Any]) -> ControllerRequest[Any, Any]:
    """It has the decision by itself; who asks and who answers must have the same one."""
    return replace(request, decision=_UNCLEAN_IS_CLEAN(request.decision))


MUTANTS: Final = (
    Mutant(
        name="shrink-counts-when-proposed",
        bug="a replica that is to leave the ISR does not count before that is committed (KIP-497)",
        owner=InSyncReplicas,
        attribute="propose",
        make=edited(
            "self._find_maximal([replica for replica, _ in proposal.members])",
            "members = [replica for replica, _ in proposal.members]\n    self._find_maximal(members)\n"
            "    if len(members) < len(self.committed):\n        self.maximal = frozenset(members)",
        ),
    ),
    Mutant(
        name="own-epoch-ignored",
        bug="a follower cuts where the leader's epoch ends, though it has another epoch there (KIP-279)",
        owner=replica_fetcher,
        attribute="truncation_offset",
        make=_OWN_EPOCH_IGNORED,
    ),
    Mutant(name="own-epoch-ignored", bug="", owner=divergence, attribute="truncation_offset", make=_OWN_EPOCH_IGNORED),
    Mutant(
        name="oldest-transaction-ignored",
        bug="with two open transactions the last stable offset passes the older one",
        owner=ProducerState,
        attribute="last_stable_offset",
        make=edited(
            "min((*self._ongoing,",
            "min((*(sorted(self._ongoing)[1:] if len(self._ongoing) > 1 else self._ongoing),",
        ),
    ),
    Mutant(
        name="producers-not-reloaded",
        bug="a log that was cut goes on with the producer state of what was cut off",
        owner=TruncatableLog,
        attribute="_drop_from",
        make=edited("    self._reload_producers(offset)\n", ""),
    ),
    Mutant(
        name="epochs-not-cut",
        bug="a log that was cut keeps the leader epochs of what was cut off",
        owner=TruncatableLog,
        attribute="_drop_from",
        make=edited("    self.leader_epochs.truncate_from_end(offset)\n", ""),
    ),
    Mutant(
        name="markers-before-the-decision",
        bug="the markers of a transaction are written before its decision is committed",
        owner=TransactionShard,
        attribute="_append",
        make=edited(
            "    self.effects.add(AwaitCommit(entry.uncommitted))\n",
            "    self.effects.add(AwaitCommit(entry.uncommitted))\n    self._maybe_write_markers(entry)\n",
        ),
    ),
    Mutant(
        name="markers-before-the-decision",
        bug="",
        owner=TransactionShard,
        attribute="on_committed",
        make=edited("    self._maybe_write_markers(entry)\n", ""),
    ),
    Mutant(
        name="old-generation-commits",
        bug="a member of an older generation of a classic group commits offsets",
        owner=ClassicGroup,
        attribute="check_commit",
        make=edited("if generation != self.generation:", "if generation > self.generation:"),
    ),
    Mutant(
        name="active-before-replay",
        bug="a controller decides on an image that lacks what is committed",
        owner=Controller,
        attribute="on_leadership",
        make=edited(
            "    self._tell_growth()\n",
            "    self._tell_growth()\n    if self._claimed_epoch is not None:\n        self._activate()\n",
        ),
    ),
    Mutant(
        name="snapshot-forgets-transactions",
        bug="a producer snapshot does not have the open transactions",
        owner=producer_snapshots,
        attribute="encode_snapshot",
        make=edited("open_since = entry.transaction_first_offset\n", "open_since = None\n"),
    ),
    Mutant(
        name="transaction-index-not-cut",
        bug="a segment that was cut keeps the aborted transactions of what was cut off",
        owner=Segment,
        attribute="truncate_to",
        make=edited("    self.transaction_index.truncate_to(offset)\n", ""),
    ),
    Mutant(
        name="gap-between-segments",
        bug="recovery does not see that batches are missing between two segments",
        owner=recovery,
        attribute="_lost_between",
        make=edited("if segment.base_offset <= max(", "if True or segment.base_offset <= max("),
    ),
    Mutant(
        name="elr-does-not-count",
        bug="the high watermark passes an eligible leader replica (KIP-966)",
        owner=InSyncReplicas,
        attribute="_find_maximal",
        make=edited("frozenset((*self.committed, *self.elr, *proposed))", "frozenset((*self.committed, *proposed))"),
    ),
    Mutant(
        name="unclean-stop-taken-for-clean",
        bug="the controller takes a broker that lost power for one that stopped cleanly",
        owner=brokers,
        attribute="register_broker",
        make=_UNCLEAN_IS_CLEAN,
    ),
    Mutant(
        name="unclean-stop-taken-for-clean",
        bug="",
        owner=brokers,
        attribute="BROKER_REGISTRATION",
        make=_unclean_registration,
    ),
    Mutant(
        name="unclean-stop-taken-for-clean",
        bug="",
        owner=lifecycle,
        attribute="BROKER_REGISTRATION",
        make=_unclean_registration,
    ),
    Mutant(
        name="unsynced-follower-counts",
        bug="with flush.messages=1 a follower tells its leader of records that it has not synced",
        owner=ReplicaFetcher,
        attribute="_position_of",
        make=edited("state.leader_epoch, state.log_end_offset,", "state.leader_epoch, log.log_end_offset,"),
    ),
    Mutant(
        name="verification-survives-the-marker",
        bug="a batch that was verified in a transaction is appended after its end (KIP-890)",
        owner=ProducerState,
        attribute="_end_transaction",
        make=edited("    self._verifications.pop(entry.producer_id, None)\n", ""),
    ),
    Mutant(
        name="one-batch-remembered",
        bug="only the last batch of a producer is recognised when it comes again",
        owner=producer_entry,
        attribute="RETAINED_BATCHES",
        make=lambda _: 1,
    ),
    Mutant(
        name="marker-taken-for-written",
        bug="a marker counts as written when the node that was asked does not lead",
        owner=MarkerSender,
        attribute="_on_answer",
        make=edited(
            "or error in _NOTHING_TO_END:", "or error in _NOTHING_TO_END or error is ErrorCode.NOT_LEADER_OR_FOLLOWER:"
        ),
    ),
    Mutant(
        name="deleted-before-it-is-tiered",
        bug="retention deletes from the disk what is not in the tier yet (KIP-405)",
        owner=truncation,
        attribute="count_breached_segments",
        make=edited("limit = min(high_watermark, tiered_end_offset)", "pass"),
    ),
    Mutant(
        name="unstable-is-copied",
        bug="a segment is copied to the tier with records that are not committed, or of open transactions (KIP-405)",
        owner=remote_log_manager,
        attribute="_next_to_copy",
        make=edited("end_offset <= stable_offset", "end_offset <= log.log_end_offset"),
    ),
    Mutant(
        name="pending-offset-wins",
        bug="an offset committed in a transaction takes the place of one that was committed later",
        owner=OffsetStore,
        attribute="end_transaction",
        make=edited("if known is None or committed.record_offset > known.record_offset:", "if True:"),
    ),
    Mutant(
        name="older-member-epoch-commits",
        bug="a member commits a partition with an older epoch than it was given it in (KIP-1251)",
        owner=offset_access,
        attribute="check_commit",
        make=_OLDER_EPOCH_MAY_COMMIT,
    ),
    Mutant(
        name="older-member-epoch-commits",
        bug="",
        owner=offset_protocol,
        attribute="check_commit",
        make=_OLDER_EPOCH_MAY_COMMIT,
    ),
    Mutant(
        name="join-behind-the-epoch-start",
        bug="a replica joins the ISR before it has what earlier leaders may have committed",
        owner=LeaderState,
        attribute="proposal_to_join",
        make=edited("        or follower.log_end_offset < self.epoch_start_offset\n", ""),
    ),
    Mutant(
        name="refused-not-remembered",
        bug="a batch behind one that was refused in passing is out of order",
        owner=Partition,
        attribute="append",
        make=edited("if self._refused:", "if False:"),
    ),
    Mutant(
        name="deleted-producers-unknown",
        bug="a follower begins at its leader's log start without the producers of what is deleted",
        owner=ReplicaManager,
        attribute="restart",
        make=edited("partition.log, offset, producers, self", "partition.log, offset, (), self"),
    ),
    Mutant(
        name="gap-in-a-compacted-topic",
        bug="recovery takes batches that are missing between two segments of a compacted topic for compacted",
        owner=recovery,
        attribute="_lost_between",
        make=edited("log.cleaned_end):", "log.cleaned_end) or log.config.is_compacted:"),
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in reversed(MUTANTS)})
"""What each is, by its name."""
