"""What the batches of a log say, one after the other, that other files in its folder must agree with."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ....protocol.batches import BatchHeader
from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.producer_entry import ProducerEntry
from ...log.rules.producer_state import EndTransactionMarker


class LastOfProducer(NamedTuple):
    epoch: int
    last_offset: int | None
    """Of its last batch of records in that epoch."""


class BatchHistory:
    """Batches are told in offset order."""

    __slots__ = ("_last_offset", "epochs", "next_offset", "open_transactions", "producers")

    def __init__(self) -> None:
        self.next_offset: int | None = None
        self.epochs: list[tuple[int, int]] = []
        """Each leader epoch of which a batch was seen, with the offset of the first and then that of the last batch,
        but for the last batch of all."""
        self._last_offset = -1
        self.open_transactions: dict[int, int] = {}
        """The first offset that is left of the transaction, by producer id."""
        self.producers: dict[int, LastOfProducer] = {}

    def add(self, header: BatchHeader, marker: EndTransactionMarker | None) -> AbortedTransaction | None:
        """The transaction that the `marker` of a control batch aborts, its first offset -1 when no batch of it is
        left; else None. The last stable offset is not told."""
        self.next_offset = header.next_offset
        epoch = header.partition_leader_epoch
        if not self.epochs or epoch > self.epochs[-1][0]:
            if self.epochs:
                self.epochs.append((self.epochs[-1][0], self._last_offset))
            self.epochs.append((epoch, header.base_offset))
        self._last_offset = header.base_offset
        if not header.has_producer_id:
            return None
        producer_id = header.producer_id
        if header.is_control:
            known = self.producers.get(producer_id)
            if known is None or known.epoch != header.producer_epoch:
                self.producers[producer_id] = LastOfProducer(header.producer_epoch, None)
            first_offset = self.open_transactions.pop(producer_id, -1)
            if marker is not None and marker.is_abort:
                return AbortedTransaction(producer_id, first_offset, header.last_offset, -1)
            return None
        self.producers[producer_id] = LastOfProducer(header.producer_epoch, header.last_offset)
        if header.is_transactional:
            self.open_transactions.setdefault(producer_id, header.base_offset)
        return None


def epoch_contradictions(entries: Sequence[tuple[int, int]], epochs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Where a leader epoch checkpoint does not agree with the epochs of batches. It may end early: a start finds the
    later ones in the batches again."""
    for (epoch, start), (following, following_start) in pairwise(entries):
        if following <= epoch or following_start <= start:
            yield (
                f"leader epoch {following} from offset {following_start} on cannot follow epoch {epoch} from offset "
                f"{start} on"
            )
            return
    if not entries:
        return
    starts = [start for _, start in entries]
    latest = entries[-1][0]
    for epoch, offset in epochs:
        slot = bisect_right(starts, offset) - 1
        if slot < 0 or epoch > latest or epoch < 0 or epoch == entries[slot][0]:
            # Deleted from the front, or not written down yet.
            continue
        yield f"offset {offset} would be of leader epoch {entries[slot][0]}, and its batch has epoch {epoch}"


def snapshot_contradictions(entries: Sequence[ProducerEntry], history: BatchHistory, end_offset: int) -> Iterator[str]:
    """Where the producer state as of `end_offset` does not agree with the batches before it. Producers may be missing:
    they expire. What it knows beyond the batches was compacted or deleted."""
    known: Mapping[int, ProducerEntry] = {entry.producer_id: entry for entry in entries}
    for entry in entries:
        last = entry.last_batch
        if last is not None and last.last_offset >= end_offset:
            yield f"producer {entry.producer_id} has a batch up to offset {last.last_offset}, which is not below it"
        begun = entry.transaction_first_offset
        if begun is not None and begun >= end_offset:
            yield f"producer {entry.producer_id} has a transaction since offset {begun}, which is not below it"
    for producer_id, seen in history.producers.items():
        found = known.get(producer_id)
        if found is None:
            continue
        if found.epoch < seen.epoch:
            yield f"producer {producer_id} has epoch {found.epoch}, and a batch before has epoch {seen.epoch}"
        elif found.epoch == seen.epoch and seen.last_offset is not None:
            last = found.last_batch
            if last is None or last.last_offset < seen.last_offset:
                yield (
                    f"producer {producer_id} ends at offset {-1 if last is None else last.last_offset}, and has a "
                    f"batch up to offset {seen.last_offset}"
                )
        if producer_id in history.open_transactions and found.transaction_first_offset is None:
            yield (
                f"producer {producer_id} has no open transaction, and began one at offset "
                f"{history.open_transactions[producer_id]}"
            )
