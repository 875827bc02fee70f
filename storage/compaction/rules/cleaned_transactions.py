"""Which transactions of a log were aborted, and what of them compaction still sees, from batch to batch.

Batches of an aborted transaction may go; its marker, and its entry in the index of aborted transactions, only when no
batch of it is left, or a reader would take what is left for committed. The same holds for markers of commits: their
going is put off until then, for consumers on their way through the transaction. Kafka: `CleanedTransactionMetadata`.
"""

from collections import deque
from collections.abc import Iterable

from ....protocol.batches import BatchHeader
from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.producer_state import EndTransactionMarker


class CleanedTransactions:
    """Batches are told in offset order."""

    __slots__ = ("_aborted", "_committed", "_following", "_seen", "retained")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` are those that have records in what is looked at, or lie behind."""
        self._following = deque(sorted(set(aborted), key=lambda transaction: transaction.first_offset))
        # By producer id: those that have begun.
        self._aborted: dict[int, AbortedTransaction] = {}
        # Producer ids of aborted, and of committed, transactions of which a batch was seen.
        self._seen: set[int] = set()
        self._committed: set[int] = set()
        self.retained: list[AbortedTransaction] = []
        """Aborted transactions whose marker stays and was told; the caller takes them out."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the batch of records is one of an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_ended(self, header: BatchHeader, marker: EndTransactionMarker | None) -> bool:
        """Whether no batch is left of the transaction that the control batch ends; `marker` is None if it is empty."""
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if marker is None:
            return True
        if not marker.is_abort:
            is_ended = producer_id not in self._committed
            self._committed.discard(producer_id)
            return is_ended
        aborted = self._aborted.pop(producer_id, None)
        is_ended = producer_id not in self._seen
        self._seen.discard(producer_id)
        if aborted is not None and not is_ended:
            self.retained.append(aborted)
        return is_ended

    def _begin_up_to(self, offset: int) -> None:
        following = self._following
        while following and following[0].first_offset <= offset:
            transaction = following.popleft()
            self._aborted.setdefault(transaction.producer_id, transaction)
