"""Bugs that other brokers had, or a review of this one found, each as one patch (docs/known-bugs.md).

Most are one line of the rule that keeps the bug out. Sources: Jepsen's analyses of Kafka, Redpanda, Bufstream and NATS,
issues of Redpanda, KAFKA-14497 and KAFKA-17754.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.coordinators.coordinator_context import CoordinatorContext
from ...broker.fetching.fetch_read import FetchRead
from ...broker.transactions.transaction_shard import TransactionShard
from ...quorum.decisions import partition_changes
from ...storage.directories.log_opening import LogOpening
from ...storage.log import log as log_module
from ...storage.log import producer_snapshots, recovery
from ...storage.log.log import Log
from ...storage.log.rules.producer_state import ProducerState
from ...storage.log.segments import Segments
from .edited import edited
from .mutant import Mutant


def _none_is_stray(find: Callable[..., Any]) -> Any:
    """A folder that the metadata do not know is removed with all that is in it."""

    def without_strays(opening: Any, directory: Any, folders: Any) -> Any:
        kept = []
        for folder in folders:
            if opening._is_stray(folder.topic, folder.partition, folder.topic_id):
                opening._files.remove_tree(folder.path)
            else:
                kept.append(folder)
        return find(opening, directory, kept)

    return without_strays


MUTANTS: Final = (
    Mutant(
        name="any-live-replica-is-elected",
        bug="a replica that is not in sync is elected though unclean elections are not allowed (Kafka 0.8)",
        owner=partition_changes,
        attribute="_elect",
        make=edited("if rules.allows_unclean:", "if rules.allows_unclean or isr or elr:"),
    ),
    Mutant(
        name="readable-before-committed",
        bug="consumers read above the high watermark, what another leader may not have (Redpanda, acks=1)",
        owner=FetchRead,
        attribute="_end_offset",
        make=edited("return partition.state.high_watermark\n", "return partition.log.log_end_offset\n"),
    ),
    Mutant(
        name="partitions-added-in-memory",
        bug="a coordinator answers AddPartitionsToTxn before its log has it, and the next one does not know (Redpanda)",
        owner=TransactionShard,
        attribute="add_partitions",
        make=edited(
            "self._append(entry, before.with_partitions(added, client_version, self._now_ms()))",
            "entry.transaction = before.with_partitions(added, client_version, self._now_ms())\n"
            "    self._open[transactional_id] = entry",
        ),
    ),
    Mutant(
        name="late-end-is-taken",
        bug="an EndTxn that comes late in version 2 ends the transaction that is open by then (KAFKA-17754)",
        owner=TransactionShard,
        attribute="_end_raising_epoch",
        make=edited(
            "if before.producer_epoch != producer.epoch and not (is_complete and is_retry):",
            "if before.producer_epoch != producer.epoch and not is_retry:",
        ),
    ),
    Mutant(
        name="deleted-batches-are-new",
        bug="a retry of a batch whose segment is deleted is stored again (Redpanda)",
        owner=Log,
        attribute="append_as_leader",
        make=edited(
            "if duplicate is not None:",
            "if duplicate is not None and duplicate.first_offset < self.log_start_offset:\n"
            "            del self.producers.entries[header.producer_id]\n"
            "        elif duplicate is not None:",
        ),
    ),
    Mutant(
        name="retry-answered-with-offset-0",
        bug="a retry is answered with offset 0, not with that of the batch it repeats (Bufstream)",
        owner=Log,
        attribute="append_as_leader",
        make=edited("duplicate.first_offset, duplicate.last_offset", "0, duplicate.last_offset"),
    ),
    Mutant(
        name="fetch-begins-behind-the-batch",
        bug="a fetch from the middle of a batch begins with the next one (Nisshi)",
        owner=Segments,
        attribute="read",
        make=edited(
            "    position, batch_size = place\n",
            "    position, batch_size = place\n"
            "    if segment.locate(start_offset - 1) == place and start_offset > segment.base_offset:\n"
            "        position += batch_size\n",
        ),
    ),
    Mutant(
        name="damaged-batches-are-replicated",
        bug="a follower takes in batches that do not have their CRC (NATS)",
        owner=log_module,
        attribute="check_replicated_batches",
        make=edited("if not is_crc_valid(records, position, header):", "if base_offset < 0:"),
    ),
    Mutant(
        name="damage-is-cut-off",
        bug="a replica cuts its log where synced records are damaged, and may lead without them (NATS)",
        owner=recovery,
        attribute="_end_at",
        make=edited("if log.next_offset < log.protected_end:", "if log.next_offset < 0:"),
    ),
    Mutant(
        name="unknown-folders-are-removed",
        bug="the records of a topic that the metadata do not have are removed, not set aside (NATS)",
        owner=LogOpening,
        attribute="_without_strays",
        make=_none_is_stray,
    ),
    Mutant(
        name="uncommitted-end-forgotten-at-start",
        bug="after a clean restart the last stable offset passes a marker that is not committed (KAFKA-14497)",
        owner=producer_snapshots,
        attribute="encode_snapshot",
        make=edited(
            "    tail.append(_COUNT.pack(len(completed)))\n", "    completed = {}\n    tail.append(_COUNT.pack(0))\n"
        ),
    ),
    Mutant(
        name="every-old-epoch-is-vouched-for",
        bug="a follower keeps records of an epoch older than all that the leader knows, below the leader's log start",
        owner=FetchRead,
        attribute="_read_partition",
        make=edited(
            "if follower is not None and not log.leader_epochs.vouches_for(wanted.last_fetched_epoch):",
            "if follower is not None and wanted.last_fetched_epoch < 0:",
        ),
    ),
    Mutant(
        name="records-tell-when-producers-expire",
        bug="a producer of records with old timestamps is forgotten at once, and its retries are stored again",
        owner=ProducerState,
        attribute="is_expired",
        make=edited("now_ms - entry.appended_ms >=", "now_ms - entry.last_timestamp >="),
    ),
    Mutant(
        name="failed-load-is-final",
        bug="a coordinator whose log could not be read once coordinates nothing until its node is started again",
        owner=CoordinatorContext,
        attribute="_load",
        make=edited("await asyncio.sleep(retry_s)", "await asyncio.sleep(1e9)"),
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
